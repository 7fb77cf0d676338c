"""The paper's tables and figures as data: what runs they need, where finished ones are kept."""
