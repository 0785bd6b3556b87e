"""tensorflow.tools.docs.doc_controls: marks for generators of documentation, which change no behaviour.

Every mark is kept as an attribute of the object, as stock's are.
"""


def _marks(attribute):
    def mark(obj):
        setattr(obj, attribute, None)
        return obj
    return mark


do_not_generate_docs = _marks("_tf_docs_do_not_document")
do_not_doc_inheritable = _marks("_tf_docs_do_not_doc_inheritable")
for_subclass_implementers = _marks("_tf_docs_for_subclass_implementers")
doc_in_current_and_subclasses = _marks("_tf_docs_doc_in_current_and_subclasses")
do_not_doc_in_subclasses = do_not_doc_inheritable
doc_private = _marks("_tf_docs_doc_private")
set_deprecated = _marks("_tf_docs_deprecated")
hide_from_search = _marks("_tf_docs_hide_from_search")


def inheritable_header(text):
    """Returns a decorator that keeps `text` as the header of a class and of those derived from it."""
    def mark(cls):
        cls._tf_docs_inheritable_header = text
        return cls
    return mark


def header(text):
    """Returns a decorator that keeps `text` as the header of one object."""
    def mark(obj):
        obj._tf_docs_header = text
        return obj
    return mark
