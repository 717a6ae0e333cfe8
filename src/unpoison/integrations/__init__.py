"""LangChain, LlamaIndex, Haystack: one file each.

    from unpoison.integrations.langchain import ScreeningCompressor      # extra langchain
    from unpoison.integrations.llamaindex import ScreeningPostprocessor  # extra llamaindex
    from unpoison.integrations.haystack import Screen                    # extra haystack

What they share, `unpoison.integrations.screener`, knows no framework.
"""
