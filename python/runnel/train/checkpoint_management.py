"""The file "checkpoint" of a folder, and the files of checkpoints."""

import glob
import os
import re

from runnel.io import any_files

_STATE_FIELDS = {"model_checkpoint_path": str, "all_model_checkpoint_paths": list,
                 "all_model_checkpoint_timestamps": list, "last_preserved_timestamp": float}


def _is_absolute(path):
    return os.path.isabs(path) or any_files.has_scheme(path)


def _message():
    from runnel.core.protobuf import message_class
    return message_class("CheckpointState")


def generate_checkpoint_state_proto(save_dir, model_checkpoint_path, all_model_checkpoint_paths=None,
                                    all_model_checkpoint_timestamps=None,
                                    last_preserved_timestamp=None):
    """Returns the CheckpointState of a folder.

    If the folder is a relative path, the paths are relative to it.
    """
    paths = all_model_checkpoint_paths if isinstance(all_model_checkpoint_paths, list) else list(all_model_checkpoint_paths or [])
    if all_model_checkpoint_timestamps and len(all_model_checkpoint_timestamps) != len(paths):
        raise ValueError("Checkpoint timestamps, if provided, must match checkpoint paths (got paths "
                         "%s and timestamps %s)" % (paths, all_model_checkpoint_timestamps))
    if not paths or paths[-1] != model_checkpoint_path:
        paths.append(model_checkpoint_path)  # to the caller's list, as in stock
    if not _is_absolute(save_dir):
        paths = [path if _is_absolute(path) else os.path.relpath(path, save_dir or ".")
                 for path in paths]
        if not _is_absolute(model_checkpoint_path):
            model_checkpoint_path = os.path.relpath(model_checkpoint_path, save_dir or ".")
    out = _message()(model_checkpoint_path=model_checkpoint_path, all_model_checkpoint_paths=paths,
                     all_model_checkpoint_timestamps=all_model_checkpoint_timestamps or [])
    if last_preserved_timestamp is not None:
        out.last_preserved_timestamp = last_preserved_timestamp
    return out


def update_checkpoint_state(save_dir, model_checkpoint_path, all_model_checkpoint_paths=None,
                            latest_filename=None, all_model_checkpoint_timestamps=None,
                            last_preserved_timestamp=None):
    """Writes the file "checkpoint" of a folder."""
    update_checkpoint_state_internal(
        save_dir, model_checkpoint_path, all_model_checkpoint_paths, latest_filename, False,
        all_model_checkpoint_timestamps, last_preserved_timestamp)


def update_checkpoint_state_internal(save_dir, model_checkpoint_path, all_model_checkpoint_paths=None,
                                     latest_filename=None, save_relative_paths=False,
                                     all_model_checkpoint_timestamps=None,
                                     last_preserved_timestamp=None):
    """Writes the file "checkpoint" of a folder; see update_checkpoint_state."""
    file = os.path.join(save_dir, latest_filename or "checkpoint")
    if save_relative_paths:
        if _is_absolute(model_checkpoint_path):
            model_checkpoint_path = os.path.relpath(model_checkpoint_path, save_dir)
        all_model_checkpoint_paths = [
            os.path.relpath(path, save_dir) if _is_absolute(path) else path
            for path in all_model_checkpoint_paths or []]
    state = generate_checkpoint_state_proto(
        save_dir, model_checkpoint_path, all_model_checkpoint_paths, all_model_checkpoint_timestamps,
        last_preserved_timestamp)
    if file == state.model_checkpoint_path:
        raise RuntimeError("Save path '%s' conflicts with path used for checkpoint state.  Please use a "
                           "different save path." % model_checkpoint_path)
    temporary = "%s.%d.tmp" % (file, os.getpid())
    with any_files.open(temporary, "w", encoding="utf-8") as stream:
        stream.write(str(state))
    any_files.replace(temporary, file)


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def _unquote(text):
    """Returns the value of a quoted string of the text format."""
    def replace(match):
        code = match.group(1)
        if code[0] in "01234567":
            return chr(int(code, 8))
        if code[0] == "x":
            return chr(int(code[1:], 16))
        return _ESCAPES.get(code, code)
    raw = re.sub(r"\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)", replace, text)
    try:
        return raw.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return raw


def _parse_state(text):
    state = _message()()
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        match = re.match(r"^(\w+)\s*:\s*(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|(\S+))\s*$", line)
        if match is None or match.group(1) not in _STATE_FIELDS:
            raise ValueError("Line %d is not part of a CheckpointState: %s" % (number, line))
        kind = _STATE_FIELDS[match.group(1)]
        quoted = match.group(2) if match.group(2) is not None else match.group(3)
        value = _unquote(quoted) if quoted is not None else float(match.group(4))
        if kind is list:
            getattr(state, match.group(1)).append(value)
        else:
            setattr(state, match.group(1), value)
    return state


def get_checkpoint_state(checkpoint_dir, latest_filename=None):
    """Returns the CheckpointState of a folder, with paths relative to the current folder, or None."""
    import logging
    if isinstance(checkpoint_dir, os.PathLike):
        checkpoint_dir = os.fspath(checkpoint_dir)
    file = os.path.join(checkpoint_dir, latest_filename or "checkpoint")
    try:
        if not any_files.exists(file):
            return None
        with any_files.open(file, encoding="utf-8") as stream:
            state = _parse_state(stream.read())
    except (OSError, ValueError) as error:
        logging.getLogger("tensorflow").warning("%s: %s: Checkpoint ignored", file, error)
        return None
    if not state.model_checkpoint_path:
        raise ValueError("Invalid checkpoint state loaded from " + checkpoint_dir)
    if not _is_absolute(state.model_checkpoint_path):
        state.model_checkpoint_path = os.path.join(checkpoint_dir, state.model_checkpoint_path)
    for i, path in enumerate(state.all_model_checkpoint_paths):
        if not _is_absolute(path):
            state.all_model_checkpoint_paths[i] = os.path.join(checkpoint_dir, path)
    return state


def _is_there(prefix):
    if "?" in prefix:  # a pattern for the shards of a V1 checkpoint
        return bool(any_files.glob(prefix))
    return any_files.isfile(prefix + ".index") or any_files.isfile(prefix) or bool(
        any_files.glob(glob.escape(prefix) + "-?????-of-?????"))


def checkpoint_exists(checkpoint_prefix):
    """Tells whether there is a checkpoint of either format at this path."""
    return _is_there(os.fspath(checkpoint_prefix))


def latest_checkpoint(checkpoint_dir, latest_filename=None):
    """Returns the path of the newest checkpoint of a folder, or None."""
    import logging
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state and state.model_checkpoint_path:
        if _is_there(state.model_checkpoint_path):
            return state.model_checkpoint_path
        logging.getLogger("tensorflow").error("Couldn't match files for checkpoint %s",
                                              state.model_checkpoint_path)
    return None


def get_checkpoint_mtimes(checkpoint_prefixes):
    """Returns the modification times of the checkpoints that exist."""
    out = []
    for prefix in checkpoint_prefixes:
        for file in (prefix + ".index", prefix):
            if any_files.isfile(file):
                out.append(any_files.getmtime(file))
                break
    return out


def meta_graph_filename(checkpoint_filename, meta_graph_suffix="meta"):
    """Returns the path of a checkpoint's graph."""
    base = re.sub(r"-[\d\?]+-of-\d+$", "", checkpoint_filename)
    return base + "." + meta_graph_suffix


def remove_checkpoint(checkpoint_prefix, checkpoint_format_version=2, meta_graph_suffix="meta"):
    """Removes the files of a checkpoint."""
    meta = meta_graph_filename(checkpoint_prefix, meta_graph_suffix)
    if any_files.exists(meta):
        any_files.remove(meta)
    escaped = checkpoint_prefix if "?" in checkpoint_prefix else glob.escape(checkpoint_prefix)
    patterns = [escaped, escaped + "-?????-of-?????"]
    if checkpoint_format_version == 2:
        patterns = [escaped + ".index", escaped + ".data-?????-of-?????"]
    for pattern in patterns:
        for file in any_files.glob(pattern):
            any_files.remove(file)
