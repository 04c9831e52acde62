"""The synthetic demo data set: digits on photographs, as COCO, label maps and class folders."""
