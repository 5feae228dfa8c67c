"""Video: clips of frames from files, images, cameras and arithmetic; frames as a feed; films."""
