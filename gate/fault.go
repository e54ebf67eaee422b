package gate

import "fmt"

// String returns "file:line:column: message", with the hint behind a
// semicolon; line and column are left out where they are 0.
func (f Fault) String() string {
	s := f.File
	if f.Line > 0 {
		s += fmt.Sprintf(":%d:%d", f.Line, f.Column)
	}
	if s != "" {
		s += ": "
	}
	s += f.Message
	if f.Hint != "" {
		s += "; " + f.Hint
	}
	return s
}
