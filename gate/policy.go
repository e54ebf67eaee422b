package gate

import "errors"

// ParsePolicy reads the operator's policy.
func ParsePolicy(file string, b []byte) (*Policy, []Fault) {
	return nil, []Fault{{File: file, Line: 1, Column: 1, Message: "not implemented"}}
}

// SetPin sets the pin of one tool in the text of a policy.
func SetPin(source []byte, tool, pin string) ([]byte, error) {
	return nil, errors.New("not implemented")
}
