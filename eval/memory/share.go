package memory

import "math"

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
	s := Share{Count: n, Of: of, Rate: quotient(n, of)}
	if of == 0 {
		return s
	}
	// Each product is rounded before it is added: no machine fuses them.
	const z2 = 1.959964 * 1.959964
	size := float64(of)
	p := float64(n) / size
	mid := p + float64(z2/float64(2*size))
	spread := math.Sqrt(float64(z2 * float64(float64(float64(p*float64(1-p))/size)+float64(z2/float64(4*float64(size*size))))))
	all := 1 + float64(z2/size)
	s.Low, s.High = round(max(0, float64(mid-spread)/all), 4), round(min(1, float64(mid+spread)/all), 4)
	return s
}

// quotient is a/b to six places, 0 where there is nothing to divide by.
func quotient(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return round(float64(a)/float64(b), 6)
}

func round(x float64, places int) float64 {
	scale := math.Pow10(places)
	return math.Round(float64(x*scale)) / scale
}
