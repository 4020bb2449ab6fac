"""PyKEEN: its command `pykeen train`, on the graph Nations, which its wheel brings."""

import counting

counting.start()
arguments = ["train", "transe", "--dataset", "nations", "--device", "cpu", "--random-seed", "0"]
counting.console_script("pykeen", *arguments, "--number-epochs", "5", "--output-directory", "result")
