"""Converts comments of headers, and docstrings, to reStructuredText."""
import re
import textwrap

SECTIONS = ("Args", "Arguments", "Returns", "Raises", "Yields", "Attributes", "References", "Example", "Examples", "Note", "Notes")


def inline(text):
    """Converts code spans and |parameters| to literals, and escapes everything else as plain text."""
    out, before = "", " "
    pieces = [piece for piece in re.split(r"(``[^`]+``|`[^`]+`|\|[A-Za-z_*][\w\[\]>.*-]*\|)", text) if piece]
    for number, piece in enumerate(pieces):
        after = pieces[number + 1][0] if number + 1 < len(pieces) else " "
        if len(piece) > 2 and piece[0] == piece[-1] and piece[0] in "`|":
            # A literal must be next to a space or punctuation; an escaped space counts and is invisible.
            out += ("" if before in " '\"([{<-/:" else "\\ ") + "``%s``" % piece.strip("`|").strip()
            out += "" if after in " '\")]}>-/:.,;!?" else "\\ "
        else:
            out += re.sub(r"([\\*`|_<>])", r"\\\1", piece)
        before = piece[-1]
    return out


def kind_of(line, before):
    """Returns whether |line| is a list item, code or text; |before| is the kind of the previous line."""
    if re.match(r"\s*(- |\d+\. )", line) and before != "code":
        return "item"
    if line.startswith(("   ", ">>>")) or (line.startswith("  ") and before != "text"):
        return "code" if before != "item" else "text"
    return "text"


def body(text, indent=""):
    """Converts the paragraphs, lists and indented examples of a comment."""
    out = []
    for block in re.split(r"\n\s*\n", textwrap.dedent(text).strip("\n")):
        runs, before = [], None
        for line in block.split("\n"):
            kind = kind_of(line, before)
            if runs and kind == runs[-1][0] and kind != "item":
                runs[-1][1].append(line)
            elif runs and kind == "text" and runs[-1][0] == "item":
                runs[-1][1].append(line)
                kind = "item"
            else:
                runs.append((kind, [line]))
            before = kind
        for kind, lines in runs:
            if kind == "code":
                out.append(indent + "::\n\n" + textwrap.indent(textwrap.dedent("\n".join(lines)), indent + "    "))
            elif kind == "item":
                out.append(indent + "- " + inline(re.sub(r"^(- |\d+\. )", "", " ".join(line.strip() for line in lines))))
            else:
                out.append("\n".join(indent + inline(line.strip()) for line in lines))
    return "\n\n".join(out)


def docstring(text, indent=""):
    """Converts a docstring with sections in Google's style."""
    out, lines, at = [], text.split("\n"), 0
    plain = []
    while at < len(lines):
        head = re.match(r"(%s):\s*$" % "|".join(SECTIONS), lines[at])
        if not head:
            plain.append(lines[at])
            at += 1
            continue
        if "".join(plain).strip():
            out.append(body("\n".join(plain), indent))
        plain, section = [], []
        at += 1
        while at < len(lines) and (not lines[at].strip() or lines[at].startswith(" ")):
            section.append(lines[at])
            at += 1
        section = textwrap.dedent("\n".join(section)).strip("\n")
        out.append(indent + "**%s**" % head.group(1))
        if head.group(1).startswith(("Example", "Note")):
            out.append(body(section, indent))
            continue
        rows = []
        for line in section.split("\n"):
            if line.startswith(" ") and rows:
                rows[-1] += " " + line.strip()
            elif line.strip():
                rows.append(line.strip())
        out.append("\n".join(indent + "- " + entry(row) for row in rows))
    if "".join(plain).strip():
        out.append(body("\n".join(plain), indent))
    return "\n\n".join(out)


def entry(row):
    """Converts a row `name: description` of a section."""
    found = re.match(r"(\*{0,2}\w[\w, .*]*): (.*)$", row)
    return "``%s``: %s" % (found.group(1), inline(found.group(2))) if found else inline(row)


def title(text, mark="="):
    return "%s\n%s\n" % (text, mark * len(text))
