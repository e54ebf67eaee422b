package memory

import (
	"fmt"
	"strconv"
	"strings"
)

// A question is one attribute of a subject, and what its values look like.
type question struct {
	words string // as people say it; nobody declares it
	value func(*draw) string
}

// The questions. Values are of the kinds that matter when they are wrong:
// people, companies, tools, money, dates, places.
var questions = []question{
	{"account manager", personName}, {"on-call engineer", personName}, {"deputy", personName},
	{"employer", companyName}, {"main supplier", companyName}, {"insurer", companyName},
	{"build tool", toolRelease}, {"database release", toolRelease},
	{"monthly budget", amount}, {"day rate", amount},
	{"delivery date", date}, {"review date", date},
	{"stand-up time", clock}, {"meeting room", room}, {"home city", city}, {"office address", street},
	{"payout account", account}, {"support address", mailAddress},
}

func personName(d *draw) string { return pick(d, data.FirstNames) + " " + pick(d, data.LastNames) }

func companyName(d *draw) string {
	return pick(d, data.FirmNames) + " " + pick(d, data.FirmTrades) + " " + pick(d, data.FirmForms)
}

func toolRelease(d *draw) string {
	return pick(d, data.ToolNames) + " " + strconv.Itoa(1+d.n(9)) + "." + strconv.Itoa(d.n(20))
}

func amount(d *draw) string {
	n := 1000 + 10*d.n(900)
	return fmt.Sprintf("%d,%03d EUR", n/1000, n%1000)
}

func date(d *draw) string { return fmt.Sprintf("%d-%02d-%02d", 2026+d.n(2), 1+d.n(12), 1+d.n(28)) }

func clock(d *draw) string { return fmt.Sprintf("%02d:%02d", 7+d.n(12), 5*d.n(12)) }

func room(d *draw) string { return "Room " + strconv.Itoa(100+d.n(600)) }

func city(d *draw) string { return pick(d, data.Cities) }

func street(d *draw) string {
	return strconv.Itoa(1+d.n(180)) + " " + pick(d, data.Streets) + " " + pick(d, data.Ways)
}

// account is in no country: no such account exists.
func account(d *draw) string {
	s := "XX"
	for range 18 {
		s += string(rune('0' + d.n(10)))
	}
	return s
}

func mailAddress(d *draw) string {
	return strings.ToLower(pick(d, data.ToolNames) + "@" + pick(d, data.FirmNames) + ".example")
}

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
