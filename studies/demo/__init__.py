"""The synthetic demo data set: handwritten digits on photographs, as COCO and label maps."""
