"""The kinds of clip: images, videos and a synthetic scene."""
