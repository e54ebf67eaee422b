package gate

// schema is one compiled, vetted JSON Schema.
type schema struct{}
