package memory

import "strings"

// The ways people write what others write otherwise. Each returns its argument
// where it has nothing to change.
var (
	plainLetters = strings.NewReplacer("ø", "o", "ö", "o", "ü", "u", "ñ", "n", "É", "E", "ő", "o", "é", "e")
	abbreviated  = strings.NewReplacer(" Street", " St.", " Road", " Rd.", " Avenue", " Ave.", " Ltd", " Ltd.", " Inc", ", Inc.", "Room ", "Rm ", "Project ", "")
	spellings    = []func(d *draw, s string, person bool) string{
		func(_ *draw, s string, _ bool) string { return strings.ToLower(s) },
		func(_ *draw, s string, _ bool) string { return plainLetters.Replace(s) },
		func(_ *draw, s string, _ bool) string { return abbreviated.Replace(s) },
		func(_ *draw, s string, _ bool) string { return strings.Replace(s, " ", "  ", 1) },
		func(_ *draw, s string, _ bool) string { return strings.Replace(s, "-", " ", 1) },
		func(_ *draw, s string, _ bool) string { return strings.Replace(s, ",", " ", 1) },
		func(d *draw, s string, person bool) string {
			if person {
				return pick(d, []string{"Dr. ", "Ms ", "Mr. ", "Prof. "}) + s
			}
			return s
		},
	}
)

// respelled is the same in another spelling; where there is none that people
// would use, it is the same.
func respelled(d *draw, s string, person bool) string {
	for _, i := range some(d, len(spellings), spellings) {
		if out := i(d, s, person); out != s {
			return out
		}
	}
	return s
}
