"""Who answers: OpenAI-compatible servers, vLLM started here or in this process, all behind one small interface."""
