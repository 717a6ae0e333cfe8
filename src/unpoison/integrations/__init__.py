"""LangChain, LlamaIndex, Haystack: one file each.

    from unpoison.integrations.langchain import ScreeningCompressor      # pip install 'unpoison[langchain]'
    from unpoison.integrations.llamaindex import ScreeningPostprocessor  # pip install 'unpoison[llamaindex]'
    from unpoison.integrations.haystack import Screen                    # pip install 'unpoison[haystack]'

What they share, `unpoison.integrations.screener`, knows no framework.
"""
