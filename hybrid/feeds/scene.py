"""The old name of hybrid.feeds.video.clips.synthetic, which pickles and programs of before know."""

from .video.clips.synthetic import Scene as Scene
