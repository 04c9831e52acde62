"""The generated demo data set: handwritten digits on photographs, as COCO and label maps."""
