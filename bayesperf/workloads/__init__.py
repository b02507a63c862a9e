"""From a JAX function to its workloads: the kernels of its optimised program, counted by formula.

One module per question: what an instruction computes (`flops`, `products`), what a kernel moves (`traffic`), how often
it runs (`schedule`, `loops`), what it is called (`families`), what lies between two uses of its data (`reuse`), and
whether XLA agrees (`crosscheck`).
"""
