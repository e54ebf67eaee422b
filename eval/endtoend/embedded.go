package endtoend

import _ "embed"

//go:embed cases/ask.yaml
var builtIn []byte

// BuiltIn are the cases that are part of the program, cases/ask.yaml: those of
// the built-in example server.
func BuiltIn() []byte { return builtIn }
