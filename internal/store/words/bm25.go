package words

import "math"

// The constants of BM25, those of FTS5.
const (
	K1 = 1.2
	B  = 0.75
	// MinIDF is the weight of a word that half of the texts hold, or more. It
	// still finds them.
	MinIDF = 1e-6
)

// IDF is the weight of a word that n of all texts hold.
func IDF(n, all int64) float64 {
	// In a float from the first operation on, as FTS5 does.
	if idf := math.Log((float64(all-n) + 0.5) / (float64(n) + 0.5)); idf > 0 {
		return idf
	}
	return MinIDF
}

// Norm is what the length of a text, in words, makes of its scores, mean being
// the average length.
//
// The conversions, here and in Score, keep a machine that can multiply and add
// at once from doing so: the last bit, too, is FTS5's, everywhere.
func Norm(length, mean float64) float64 {
	return float64(K1 * (1 - B + float64(B*length)/mean))
}

// Score is what a word of weight idf that stands freq times in a text of that
// norm adds to the score of the text.
func Score(idf, freq, norm float64) float64 {
	return float64(idf * ((freq * (K1 + 1.0)) / (freq + norm)))
}
