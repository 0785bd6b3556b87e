"""runnel.serving: Python functions as models of `runnel serve`.

    from runnel.serving import serve

    serve(lambda x: {"y": x["x"] * 2}, inputs={"x": ("float32", [None])}, outputs={"y": ("float32", [None])})

doc/containers.md is the guide. `container.py` needs NumPy alone, and also runs by its path, without the rest of the package.
"""

from runnel.serving.container import Error, Signature, main, serve, signature

__all__ = ["Error", "Signature", "main", "serve", "signature"]
