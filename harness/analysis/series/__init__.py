"""The series behind the report's figures and tables: frozen values of arrays, computed once from the timeline."""
