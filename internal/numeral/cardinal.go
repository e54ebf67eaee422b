package numeral

import "strings"

// table reads "one=1 two=2 …".
func table(list string) map[string]int {
	out := map[string]int{}
	for entry := range strings.FieldsSeq(list) {
		w, digits, _ := strings.Cut(entry, "=")
		n := 0
		for _, d := range digits {
			n = n*10 + int(d-'0')
		}
		out[w] = n
	}
	return out
}

// The words of numbers, folded. A language whose numbers are words beside each
// other, like the English ones, is added here; one that writes them together has
// the German shape.
var (
	units = table(`one=1 two=2 three=3 four=4 five=5 six=6 seven=7 eight=8 nine=9 ten=10 eleven=11 twelve=12 thirteen=13
		fourteen=14 fifteen=15 sixteen=16 seventeen=17 eighteen=18 nineteen=19`)
	tens = table("twenty=20 thirty=30 forty=40 fifty=50 sixty=60 seventy=70 eighty=80 ninety=90")

	einheiten = table(`ein=1 eins=1 eine=1 einen=1 einem=1 einer=1 zwei=2 zwo=2 drei=3 vier=4 fünf=5 sechs=6 sieben=7 acht=8 neun=9
		zehn=10 elf=11 zwölf=12 dreizehn=13 vierzehn=14 fünfzehn=15 sechzehn=16 siebzehn=17 achtzehn=18 neunzehn=19`)
	zehner = table("zwanzig=20 dreissig=30 vierzig=40 fünfzig=50 sechzig=60 siebzig=70 achtzig=80 neunzig=90")
)

// Cardinal reads the number in words that begins at i, 1 to 999,999 or a
// million, and returns it with the index of the word after it. A run of number
// words that makes no one number ("twenty twenty") has none: n is 0, and next is
// behind all of it. Where no number word stands, next is i.
func Cardinal(ws []Word, i int) (n, next int) {
	ws = ws[:lineEnd(ws, i)]
	if n, next = cardinal(ws, i); next == i {
		return 0, i
	}
	for {
		more := follow(ws, next)
		_, end := cardinal(ws, more)
		if scale(at(ws, more)) {
			end = more + 1
		}
		if end == more {
			return n, next
		}
		n, next = 0, end
	}
}

// lineEnd is where the line of the i-th word ends, or longRun words later: no
// number has as many.
func lineEnd(ws []Word, i int) int {
	end := min(i+1, len(ws))
	for end < min(len(ws), i+longRun) && ws[end].Gap != Line {
		end++
	}
	return end
}

const longRun = 24

// follow passes a hyphen that joins number words.
func follow(ws []Word, i int) int {
	if i+1 < len(ws) && ws[i].Fold == "-" && ws[i].Gap == Glued && ws[i+1].Gap == Glued {
		return i + 1
	}
	return i
}

func at(ws []Word, i int) string {
	if i < len(ws) && ws[i].Class == Letters {
		return ws[i].Fold
	}
	return ""
}

func cardinal(ws []Word, i int) (n, next int) {
	if n = german(at(ws, i)); n > 0 {
		if strings.HasPrefix(at(ws, i), "eine") && at(ws, i+1) == "million" {
			return 1_000_000, i + 2
		}
		return n, i + 1
	}
	n, next = thousands(ws, i)
	if next == i && (at(ws, i) == "a" || at(ws, i) == "an") {
		next = i + 1
		n = 1
	}
	if w := at(ws, next); next > i && n == 1 && w == "million" {
		return 1_000_000, next + 1
	}
	if a := at(ws, i); next == i+1 && (a == "a" || a == "an") {
		return 0, i // an article
	}
	return n, next
}

// thousands reads English words: [hundreds] thousand [and] hundreds.
func thousands(ws []Word, i int) (n, next int) {
	high, next := hundreds(ws, i)
	if high == 0 && at(ws, i) == "a" {
		high, next = 1, i+1
	}
	if high == 0 || at(ws, next) != "thousand" {
		return hundreds(ws, i)
	}
	n, next = high*1000, next+1
	if low, end := hundreds(ws, next); low > 0 && low < 1000 {
		return n + low, end
	} else if low, end := below100(ws, next+1); at(ws, next) == "and" && low > 0 && !scale(at(ws, end)) {
		return n + low, end
	}
	return n, next
}

// hundreds reads [units] hundred [and] tens, up to nineteen hundred.
func hundreds(ws []Word, i int) (n, next int) {
	high, next := units[at(ws, i)], i+1
	if at(ws, i) == "a" {
		high = 1
	}
	if high == 0 || at(ws, next) != "hundred" {
		return below100(ws, i)
	}
	n, next = high*100, next+1
	low, end := below100(ws, next)
	if low == 0 && at(ws, next) == "and" {
		low, end = below100(ws, next+1)
	}
	if low > 0 && !(at(ws, end) == "hundred") {
		return n + low, end
	}
	return n, next
}

func scale(w string) bool { return w == "hundred" || w == "thousand" }

// below100 reads units, or tens with units.
func below100(ws []Word, i int) (n, next int) {
	if n = units[at(ws, i)]; n > 0 {
		return n, i + 1
	}
	if n = tens[at(ws, i)]; n == 0 {
		return 0, i
	}
	if low := units[at(ws, follow(ws, i+1))]; low > 0 && low < 10 {
		return n + low, follow(ws, i+1) + 1
	}
	return n, i + 1
}

// german reads a German number, which is one word, or returns 0.
func german(w string) int {
	if len(w) > longWord {
		return 0
	}
	n := 0
	if high, low, ok := strings.Cut(w, "tausend"); ok {
		if n = 1000; high != "" {
			n = 1000 * germanHundreds(high)
		}
		if w = strings.TrimPrefix(low, "und"); n == 0 || w == "" {
			return n
		}
	}
	low := germanHundreds(w)
	if low == 0 {
		return 0
	}
	return n + low
}

func germanHundreds(w string) int {
	n := 0
	if high, low, ok := strings.Cut(w, "hundert"); ok {
		if n = 100; high != "" {
			n = 100 * einheiten[high]
		}
		if n == 0 || n > 900 {
			return 0
		}
		if w = strings.TrimPrefix(low, "und"); w == "" {
			return n
		}
	}
	low := einheiten[w] + zehner[w]
	if one, ten, ok := strings.Cut(w, "und"); ok && low == 0 {
		if low = einheiten[one]; low == 0 || low > 9 || zehner[ten] == 0 {
			return 0
		}
		low += zehner[ten]
	}
	if low == 0 {
		return 0
	}
	return n + low
}
