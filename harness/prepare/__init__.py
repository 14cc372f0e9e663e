"""Compiled pipelines made ready for load: caching, node placement, retries, resources, images. Documents in and out.

A pipeline's documents are those of KFP's compiler: the PipelineSpec, then the PlatformSpec if there is one. Functions
here return new documents and leave the given ones alone. Where a document lacks a part, they raise a LookupError, which
the reader of the file explains.
"""
