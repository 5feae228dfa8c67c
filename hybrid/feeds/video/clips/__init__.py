"""Kinds of clip, one module each; `open.open_clips` discovers them, and those that other distributions offer as "hybrid.clips".

A module has

    SUFFIXES   the suffixes of the files that it opens; empty for a kind selected by the module's name, as "synthetic:1"
    open_clip  (source, shape) -> Clip; source: the path of the file, or the text after the colon (or "")
"""
