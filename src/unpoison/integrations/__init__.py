"""LangChain, LlamaIndex, Haystack: one file each.

    from unpoison.integrations.langchain import ScreeningCompressor      # extra langchain
    from unpoison.integrations.llamaindex import ScreeningPostprocessor  # extra llamaindex
    from unpoison.integrations.haystack import Screen                    # extra haystack

The shared code, `unpoison.integrations.screener`, imports no framework.
"""
