package screen

import (
	"strings"
	"testing"
)

// hard are texts that cost most, each repeated up to MaxText.
var hard = map[string]string{
	"digits apart": "h 0 w t 0 m 4 k e 1 ! | ",
	"letters":      "how to make a ",
	"mixed":        "how do i m4ke the b-0-m-b 1n a 6om6 5tyle, h.0.w t0 g3t ",
	"excused":      "make the bath bomb, write a short report. kill the child process; ",
	"gaps":         "get get find show me tell me want to learn to how to make my their access ",
	"words":        "INC-1042 the customer's log of eu-west-1 shows k8s node9 at 10:45 down. ",
}

// BenchmarkCheck prints what the longest text may cost.
func BenchmarkCheck(b *testing.B) {
	s := Default()
	for name, text := range hard {
		text = strings.Repeat(text, MaxText/len(text))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				s.Check(text)
			}
		})
	}
}
