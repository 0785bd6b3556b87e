"""tf.keras.preprocessing: sequences to arrays (`sequence`), text to numbers (`text`)."""

import collections
import types

_FILTERS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'


def pad_sequences(sequences, maxlen=None, dtype="int32", padding="pre", truncating="pre", value=0.0):
    """Converts lists of different lengths to an array: pads with `value` and truncates, at the start ("pre") or end ("post")."""
    import numpy as np
    rows = [list(row) for row in sequences]
    length = max((len(row) for row in rows), default=0) if maxlen is None else maxlen
    inner = next((np.shape(row)[1:] for row in rows if len(row)), ())
    result = np.full((len(rows), length) + tuple(inner), value, dtype=dtype)
    for i, row in enumerate(rows):
        if truncating not in ("pre", "post"):
            raise ValueError("Truncating type \"%s\" not understood" % truncating)
        kept = row[:length] if truncating == "post" else row[len(row) - min(length, len(row)):]
        if not kept:
            continue
        if padding == "post":
            result[i, :len(kept)] = kept
        elif padding == "pre":
            result[i, -len(kept):] = kept
        else:
            raise ValueError("Padding type \"%s\" not understood" % padding)
    return result


def text_to_word_sequence(text, filters=_FILTERS, lower=True, split=" "):
    """Returns the words of a text."""
    text = text.lower() if lower else text
    return [word for word in text.translate({ord(c): split for c in filters}).split(split) if word]


def one_hot(text, n, filters=_FILTERS, lower=True, split=" "):
    """Returns the words of a text as numbers from 1 to n - 1, by hashing."""
    import zlib
    return [zlib.crc32(word.encode()) % (n - 1) + 1 for word in text_to_word_sequence(text, filters, lower, split)]


class Tokenizer:
    """Converts words to numbers from 1 on, the most frequent first.

    Args:
      num_words: how many numbers to use; by default all.
      filters: characters that separate words.
      lower: whether to convert to lower case.
      split: the separator.
      char_level: whether to use characters instead of words.
      oov_token: the word, number 1, for unknown words.
    """

    def __init__(self, num_words=None, filters=_FILTERS, lower=True, split=" ", char_level=False, oov_token=None, **kwargs):
        self.num_words, self.filters, self.lower, self.split = num_words, filters, lower, split
        self.char_level, self.oov_token = char_level, oov_token
        self.word_counts, self.word_docs = collections.OrderedDict(), collections.defaultdict(int)
        self.word_index, self.index_word, self.index_docs, self.document_count = {}, {}, {}, 0

    def _words(self, text):
        if self.char_level or isinstance(text, list):
            return [word.lower() for word in text] if self.lower else list(text)
        return text_to_word_sequence(text, self.filters, self.lower, self.split)

    def fit_on_texts(self, texts):
        """Learns the words of texts."""
        for text in texts:
            self.document_count += 1
            words = self._words(text)
            for word in words:
                self.word_counts[word] = self.word_counts.get(word, 0) + 1
            for word in set(words):
                self.word_docs[word] += 1
        known = sorted(self.word_counts, key=self.word_counts.get, reverse=True)
        if self.oov_token is not None:
            known.insert(0, self.oov_token)
        self.word_index = {word: i + 1 for i, word in enumerate(known)}
        self.index_word = {i: word for word, i in self.word_index.items()}
        self.index_docs = {self.word_index[word]: count for word, count in self.word_docs.items()}

    def texts_to_sequences(self, texts):
        """Returns the numbers of each text's words; unknown words are omitted, or become `oov_token`."""
        unknown = self.word_index.get(self.oov_token)
        result = []
        for text in texts:
            row = []
            for word in self._words(text):
                i = self.word_index.get(word)
                if i is None or (self.num_words and i >= self.num_words):
                    i = unknown
                if i is not None:
                    row.append(i)
            result.append(row)
        return result

    def sequences_to_texts(self, sequences):
        """Returns the words of numbers, separated by spaces."""
        result = []
        for row in sequences:
            words = [self.index_word.get(i) if not self.num_words or i < self.num_words else self.oov_token for i in row]
            result.append(" ".join(self.oov_token if word is None else word for word in words if word is not None or self.oov_token is not None))
        return result

    def texts_to_matrix(self, texts, mode="binary"):
        """Returns a row per text: which words it has ("binary"), how often ("count"), relative ("freq"), or "tfidf"."""
        return self.sequences_to_matrix(self.texts_to_sequences(texts), mode)

    def sequences_to_matrix(self, sequences, mode="binary"):
        """Like texts_to_matrix, for numbers."""
        import numpy as np
        width = self.num_words or len(self.word_index) + 1
        result = np.zeros((len(sequences), width))
        for i, row in enumerate(sequences):
            for number, count in collections.Counter(n for n in row if n < width).items():
                if mode == "count":
                    result[i, number] = count
                elif mode == "freq":
                    result[i, number] = count / len(row)
                elif mode == "binary":
                    result[i, number] = 1
                elif mode == "tfidf":
                    rare = np.log(1 + self.document_count / (1 + self.index_docs.get(number, 0)))
                    result[i, number] = (1 + np.log(count)) * rare
                else:
                    raise ValueError("Unknown vectorization mode: %s" % mode)
        return result


sequence = types.SimpleNamespace(pad_sequences=pad_sequences)
text = types.SimpleNamespace(Tokenizer=Tokenizer, text_to_word_sequence=text_to_word_sequence, one_hot=one_hot)
