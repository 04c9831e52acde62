"""How measurements are shown: figures, Markdown tables, and the machine they were made on."""
