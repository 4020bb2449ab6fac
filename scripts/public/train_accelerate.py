"""Accelerate: its program `accelerate.test_utils.scripts.test_script`, the trainings in it."""

import counting

counting.start()
counting.module("accelerate.test_utils.scripts.test_script")
