"""What is on disk: checkpoints of learners, and files that are whole or not there."""
