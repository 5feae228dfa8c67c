"""Kinds of clip, a module each. `open.open_clips` finds them, and those that other distributions offer as "hybrid.clips".

A module has

    SUFFIXES   the suffixes of the files that it opens; empty for a kind that users name by the module's name, as "synthetic:1"
    open_clip  (source, shape) -> Clip; source: the path of the file, or what stands after the colon (or "")
"""
