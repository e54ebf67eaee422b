package memory

import "github.com/writ-project/writ/eval/measure"

// Share is a part of a whole, with the 95 % interval of Wilson. Rates have six
// places, bounds four.
type Share struct {
	Count int     `json:"count"`
	Of    int     `json:"of"`
	Rate  float64 `json:"rate"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

func share(n, of int) Share {
	s := Share{Count: n, Of: of, Rate: measure.Quotient(n, of)}
	if of > 0 {
		low, high := measure.Wilson(n, of, 1.959964)
		s.Low, s.High = measure.Round(low, 4), measure.Round(high, 4)
	}
	return s
}
