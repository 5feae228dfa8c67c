"""Video: clips of frames from files, images and arithmetic; frames as a feed; films."""
