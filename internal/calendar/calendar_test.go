package calendar

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"pgregory.net/rapid"
)

// said is how a case names the candidates of each kind: seconds of 00 left out.
func said(words string, at time.Time) string {
	out := []string{}
	rs := Read(words, at)
	for kind, name := range []string{Date: "date", Clock: "clock", Instant: "instant", Duration: "duration"} {
		if name == "" {
			continue
		}
		if c := Candidates(rs, Kind(kind)); len(c) > 0 {
			for i := range c {
				if strings.Count(c[i], ":") == 2 {
					c[i] = strings.TrimSuffix(c[i], ":00")
				}
			}
			list := strings.Join(c, " ")
			if dates := Candidates(rs, Date); kind == int(Instant) && list == strings.Join(dates, "T00:00 ")+"T00:00" {
				list = "begins" // 00:00 of each day
			}
			out = append(out, name+" "+list)
		}
	}
	if len(out) == 0 {
		return "-"
	}
	return strings.Join(out, " | ")
}

// TestCases reads testdata/cases.txt.
func TestCases(t *testing.T) {
	b, err := os.ReadFile("testdata/cases.txt")
	if err != nil {
		t.Fatal(err)
	}
	var at time.Time
	n := 0
	for i, line := range strings.Split(string(b), "\n") {
		if zone, ok := strings.CutPrefix(line, "@ "); ok {
			when, name, _ := strings.Cut(zone, " ")
			loc, err := time.LoadLocation(name)
			if err != nil {
				t.Fatal(err)
			}
			if at, err = time.ParseInLocation("2006-01-02T15:04:05", when, loc); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if line == "" || line[0] == '#' {
			continue
		}
		words, want, _ := strings.Cut(line, " => ")
		n++
		if got := said(strings.NewReplacer(`\n`, "\n", `\u200b`, "\u200b").Replace(words), at); got != want {
			t.Errorf("line %d: %s\n got %s\nwant %s", i+1, words, got, want)
		}
	}
	if n < 100 {
		t.Errorf("only %d cases", n)
	}
}

const dateForm, instantForm = "2006-01-02", "2006-01-02T15:04:05"

func zone(t testing.TB, name string) *time.Location {
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// daysFrom yields days one by one, forwards or back, the plain way.
func daysFrom(at time.Time, step, n int) (out []time.Time) {
	for d := time.Date(at.Year(), at.Month(), at.Day(), 12, 0, 0, 0, time.UTC); len(out) < n; d = d.AddDate(0, 0, step) {
		out = append(out, d)
	}
	return out
}

func texts(days ...time.Time) (out []string) {
	for _, d := range days {
		out = append(out, d.Format(dateForm))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func first(days []time.Time, fits func(time.Time) bool) time.Time {
	return days[slices.IndexFunc(days, fits)]
}

// TestEveryDay: each way to write a day with its year names that day and no
// other, for every day of some years.
func TestEveryDay(t *testing.T) {
	at := time.Date(2024, 5, 15, 12, 0, 0, 0, time.UTC)
	nth := func(n int) string {
		switch {
		case n/10 == 1 || n%10 == 0 || n%10 > 3:
			return fmt.Sprint(n, "th")
		}
		return fmt.Sprint(n, []string{"st", "nd", "rd"}[n%10-1])
	}
	months := strings.Fields("Januar Februar März April Mai Juni Juli August September Oktober November Dezember")
	for _, d := range daysFrom(time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC), 1, 4*365+1) {
		want := texts(d)
		german := fmt.Sprintf("%d. %s %d", d.Day(), months[d.Month()-1], d.Year())
		for _, s := range []string{d.Format(dateForm), d.Format("2006/01/02"), d.Format("2.1.2006"), d.Format("2 January 2006"), d.Format("Jan 2, 2006"), d.Format("Monday, January 2, 2006"),
			fmt.Sprintf("the %s of %s, %d", nth(d.Day()), d.Month(), d.Year()), fmt.Sprintf("%s %s %d", strings.ToUpper(d.Month().String()), nth(d.Day()), d.Year()), german} {
			if got := Candidates(Read("see you on "+s+".", at), Date); !slices.Equal(got, want) {
				t.Fatalf("%s is %v", s, got)
			}
		}
		either := texts(d)
		if swapped := time.Date(d.Year(), time.Month(d.Day()), int(d.Month()), 0, 0, 0, 0, time.UTC); d.Day() <= 12 {
			either = texts(d, swapped)
		}
		if got := Candidates(Read(d.Format("02/01/2006"), at), Date); !slices.Equal(got, either) {
			t.Fatalf("%s is %v", d.Format("02/01/2006"), got)
		}
	}
}

// TestDaysAgainstModel: days counted from a turn, by looking at one day after
// the other.
func TestDaysAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(1.5e9, 2.5e9).Draw(t, "at"), 0).UTC()
		day := time.Weekday(rapid.IntRange(0, 6).Draw(t, "weekday"))
		is := func(d time.Time) bool { return d.Weekday() == day }
		ahead, back := daysFrom(at, 1, 40), daysFrom(at, -1, 40)
		today := ahead[0]
		coming := first(ahead, is)
		// The weeks before, of and after today, begun on a Monday and on a Sunday.
		week := func(begin time.Weekday, k int) []time.Time {
			d := first(back, func(d time.Time) bool { return d.Weekday() == begin })
			return daysFrom(d.AddDate(0, 0, 7*k), 1, 7)
		}
		in := func(k int) []time.Time {
			return []time.Time{first(week(time.Monday, k), is), first(week(time.Sunday, k), is)}
		}
		n := rapid.IntRange(1, 400).Draw(t, "n")
		all := append(daysFrom(at, -1, 500), daysFrom(at, 1, 500)...)
		month := func(m time.Month, y int) (out []time.Time) {
			for _, d := range daysFrom(time.Date(y, m, 1, 0, 0, 0, 0, time.UTC), 1, 31) {
				if d.Month() == m {
					out = append(out, d)
				}
			}
			return out
		}
		weekend := func(days []time.Time) []time.Time { return days[5:] }
		next, _ := at, all
		for m := at.Month(); next.Month() == m; next = next.AddDate(0, 0, 1) {
		}
		given := time.Date(2026, 12, 24, 0, 0, 0, 0, time.UTC)
		german := strings.Fields("Sonntag Montag Dienstag Mittwoch Donnerstag Freitag Samstag")
		later := func(days []time.Time) (out []time.Time) {
			for _, d := range days {
				out = append(out, daysFrom(d, 1, 8)[7])
			}
			return out
		}
		for words, want := range map[string][]string{
			"on " + day.String():               texts(append([]time.Time{coming}, map[bool][]time.Time{true: {first(ahead[1:], is)}}[coming == today]...)...),
			"this " + day.String():             texts(first(week(time.Monday, 0), is), coming),
			"next " + day.String():             texts(append(in(1), first(ahead[1:], is))...),
			"last " + day.String():             texts(append(in(-1), first(back[1:], is))...),
			day.String() + " of next week":     texts(in(1)...),
			"next week":                        texts(append(week(time.Monday, 1), week(time.Sunday, 1)...)...),
			"this week":                        texts(append(week(time.Monday, 0), week(time.Sunday, 0)...)...),
			"last week":                        texts(append(week(time.Monday, -1), week(time.Sunday, -1)...)...),
			"this weekend":                     texts(weekend(week(time.Monday, 0))...),
			"last weekend":                     texts(weekend(week(time.Monday, -1))...),
			"this month":                       texts(month(at.Month(), at.Year())...),
			"next month":                       texts(month(next.Month(), next.Year())...),
			"today":                            texts(today),
			"yesterday":                        texts(back[1]),
			"übermorgen":                       texts(ahead[2]),
			fmt.Sprintf("in %d days", n):       texts(daysFrom(at, 1, n+1)[n]),
			fmt.Sprintf("vor %d Tagen", n):     texts(daysFrom(at, -1, n+1)[n]),
			fmt.Sprintf("%d weeks ago", n):     texts(daysFrom(at, -1, 7*n+1)[7*n]),
			"between today and the 9th of May": nil,
			fmt.Sprintf("%d days after 24 December 2026", n):               texts(daysFrom(given, 1, n+1)[n]),
			fmt.Sprintf("%d weeks before 24 December 2026", n):             texts(daysFrom(given, -1, 7*n+1)[7*n]),
			"the " + day.String() + " after 24 December 2026":              texts(first(daysFrom(given, 1, 9)[1:], is)),
			"the " + day.String() + " before 24 December 2026":             texts(first(daysFrom(given, -1, 9)[1:], is)),
			"the last " + day.String() + " of February 2028":               texts(first(daysFrom(time.Date(2028, 2, 29, 0, 0, 0, 0, time.UTC), -1, 7), is)),
			"the second " + day.String() + " of February 2028":             texts(first(daysFrom(time.Date(2028, 2, 8, 0, 0, 0, 0, time.UTC), 1, 7), is)),
			"a week from next " + day.String():                             texts(append(append(in(1), first(ahead[1:], is)), later(append(in(1), first(ahead[1:], is)))...)...), // "book a week from next Monday"
			"der dritte " + german[day] + " im Februar 2028":               texts(first(daysFrom(time.Date(2028, 2, 15, 0, 0, 0, 0, time.UTC), 1, 7), is)),
			"eine Woche nach dem letzten " + german[day] + " im März 2027": texts(later([]time.Time{first(daysFrom(time.Date(2027, 3, 31, 0, 0, 0, 0, time.UTC), -1, 7), is)})...),
		} {
			if want == nil {
				continue
			}
			if got := Candidates(Read(words, at), Date); !slices.Equal(got, want) {
				t.Fatalf("%s on %s: %v, want %v", words, at.Format("Monday 2006-01-02"), got, want)
			}
		}
		// A day without a year: this year's, and the next to come.
		some := daysFrom(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), 1, 366)[rapid.IntRange(0, 365).Draw(t, "day")]
		same := func(d time.Time) bool { return d.Day() == some.Day() && d.Month() == some.Month() }
		want := []time.Time{first(daysFrom(at, 1, 8*366+1), same)}
		for _, d := range daysFrom(time.Date(at.Year(), 1, 1, 0, 0, 0, 0, time.UTC), 1, 366) {
			if same(d) && d.Year() == at.Year() {
				want = append(want, d)
			}
		}
		if got := Candidates(Read(some.Format("2 January"), at), Date); !slices.Equal(got, texts(want...)) {
			t.Fatalf("%s on %s: %v", some.Format("2 January"), at, got)
		}
	})
}

// TestClocks: every minute of a day as people write it.
func TestClocks(t *testing.T) {
	at := time.Date(2024, 5, 15, 12, 0, 0, 0, time.UTC)
	for m := range 24 * 60 {
		clock := time.Date(2024, 5, 15, 0, m, 0, 0, time.UTC)
		want := []string{clock.Format("15:04:05")}
		for _, s := range []string{clock.Format("15:04"), clock.Format("15:04:05"), clock.Format("3:04pm"), clock.Format("3:04 PM"), clock.Format("15:04 Uhr"), clock.Format("3.04pm"),
			strings.NewReplacer("AM", "a.m.", "PM", "p.m.").Replace(clock.Format("at 3:04 PM"))} {
			if got := Candidates(Read(s, at), Clock); !slices.Equal(got, want) {
				t.Fatalf("%s is %v, want %v", s, got, want)
			}
		}
		other := clock.Add(12 * time.Hour)
		if got := Candidates(Read(clock.Format("3:04"), at), Clock); !slices.Contains(got, want[0]) && clock.Hour()%12 != 0 && clock.Hour() < 10 ||
			len(got) == 2 && !slices.Contains(got, clock.Format("15:04:05")) && !slices.Contains(got, other.Format("15:04:05")) || len(got) > 2 {
			t.Fatalf("%s is %v", clock.Format("3:04"), got)
		}
	}
}

// TestCombinations: what an instant is made of was said, each in one piece of
// the words, and never are there more than MaxCandidates.
func TestCombinations(t *testing.T) {
	made := 0
	rapid.Check(t, func(t *rapid.T) {
		words := strings.Join(rapid.SliceOfN(rapid.SampledFrom(strings.Split("Friday|next Friday|on 2024-05-20|today|May 3rd|next week|from May 3rd to May 5th|"+
			"at 10:00|at 3|3pm|from 10 to 11|10pm to 2am|midnight|for an hour|two nights|30 minutes|in the morning|tonight|and|or|,|.|\n|the talk|between 2 and 4pm|in 2 hours|um 9 Uhr|at|on", "|")), 1, 14).Draw(t, "words"), " ")
		at := time.Date(2024, 5, 15, 12, 0, 0, 0, time.UTC)
		rs := Read(words, at)
		days, clocks := map[string]bool{}, map[string]bool{}
		for _, r := range rs {
			if len(r.Candidates) == 0 || len(r.Candidates) > MaxCandidates || !slices.IsSorted(r.Candidates) || len(r.At) == 0 || len(r.At) > 3 {
				t.Fatalf("%q: %+v", words, r)
			}
			for i, p := range r.At {
				if p.Start < 0 || p.End > len(words) || p.Start >= p.End || i > 0 && p.Start < r.At[i-1].End {
					t.Fatalf("%q: %+v", words, r)
				}
			}
			for _, c := range r.Candidates {
				days[c] = days[c] || r.Kind == Date
				clocks[c] = clocks[c] || r.Kind == Clock
			}
			for _, p := range r.At { // a clock that belongs to one of two days is none by itself
				for _, part := range Read(words[p.Start:p.End], at) {
					for _, c := range part.Candidates {
						clocks[c] = clocks[c] || r.Kind == Instant && part.Kind == Clock
					}
				}
			}
		}
		for _, c := range Candidates(rs, Instant) {
			made++
			d, _ := time.Parse(instantForm, c)
			known := days[d.Format(dateForm)] || days[d.AddDate(0, 0, -1).Format(dateForm)] // over midnight
			ends := slices.ContainsFunc(rs, func(r Reading) bool { return r.Kind == Duration })
			if !ends && (!known || !clocks[d.Format("15:04:05")] && d.Format("15:04:05") != "00:00:00") {
				t.Fatalf("%q: %s of %v and %v", words, c, days, clocks)
			}
			if r, ok := Holds(c, rs, at.Location()); !ok || r.Kind != Instant {
				t.Fatalf("%q: %s does not hold", words, c)
			}
		}
	})
	if made == 0 {
		t.Error("no instants: the property says nothing")
	}
}

// TestHolds: spellings of an argument.
func TestHolds(t *testing.T) {
	at := time.Date(2024, 5, 15, 12, 0, 0, 0, zone(t, "Europe/Berlin"))
	rs := Read("2024-05-16 at 10:00", at)
	for _, c := range []struct {
		arg  string
		kind Kind
	}{
		{"2024-05-16", Date}, {"10:00", Clock}, {"10:00:00", Clock}, {"2024-05-16 10:00", Instant}, {"2024-05-16T10:00", Instant}, {"2024-05-16 10:00:00", Instant},
		{"2024-05-16T10:00:00", Instant}, {"2024-05-16T10:00:00+02:00", Instant}, {"2024-05-16T08:00:00Z", Instant}, {"2024-05-16T08:00:00.000Z", Instant},
		{"2024-05-16T04:00:00-04:00", Instant}, {"2024-05-16T08:00:00+00:00", Instant},
	} {
		if r, ok := Holds(c.arg, rs, at.Location()); !ok || r.Kind != c.kind {
			t.Errorf("%s: %v %v", c.arg, r, ok)
		}
	}
	for _, arg := range strings.Split("|2024-05-15|2024-5-16|16.05.2024|05/16/2024|20240516|2024-05-16 |\n2024-05-16|10|10am|10:00:01|10:0|1000|22:00|10:00Z|2024-05-16T10|2024-05-16t10:00|2024-05-16  10:00|"+
		"2024-05-16T10:00Z|2024-05-16T10:00:00Z|2024-05-16 08:00:00Z|2024-05-16T08:00:00z|2024-05-16T08:00:00-00:00|2024-05-16T08:00:00.5Z|2024-05-16T08:00:00,0Z|2024-05-16T08:00:00+0000|2024-05-16T10:00:00+02|"+
		"2024-05-16T10:00:00.0|2024-05-16T00:00|2024-05-16T24:00|2024-05-17T00:00|2024-05-16T34:00:00+26:00|+2024-05-16|２０２４-05-16|tomorrow|Thursday|2024-05-16T10:00:00+02:00x", "|") {
		if r, ok := Holds(arg, rs, at.Location()); ok {
			t.Errorf("%q: %v", arg, r)
		}
	}
}

// TestChangeOfClocks: what an argument with an offset says is what clocks in the
// user's zone show: once in the hour that is skipped (never), twice in the one
// that comes twice.
func TestChangeOfClocks(t *testing.T) {
	for words, want := range map[string]string{
		"2024-03-31 at 02:30": "", "2024-03-31 at 03:30": "2024-03-31T01:30:00Z",
		"2024-10-27 at 02:30": "2024-10-27T00:30:00Z 2024-10-27T01:30:00Z", "2024-10-27 at 04:30": "2024-10-27T03:30:00Z",
	} {
		loc := zone(t, "Europe/Berlin")
		rs := Read(words, time.Date(2024, 3, 1, 12, 0, 0, 0, loc))
		var held []string
		for utc := time.Date(2024, 3, 30, 0, 0, 0, 0, time.UTC); utc.Year() == 2024; utc = utc.Add(30 * time.Minute) {
			if _, ok := Holds(utc.Format(time.RFC3339), rs, loc); ok {
				held = append(held, utc.Format(time.RFC3339))
			}
			if elsewhere := utc.In(time.FixedZone("", -4*3600)); len(held) > 0 && held[len(held)-1] == utc.Format(time.RFC3339) {
				if _, ok := Holds(elsewhere.Format(time.RFC3339), rs, loc); !ok {
					t.Errorf("%s: %s does not hold", words, elsewhere)
				}
			}
		}
		if strings.Join(held, " ") != want {
			t.Errorf("%s: %v, want %s", words, held, want)
		}
	}
}

// TestMany: exact days come before the days of a week, and a text that says too
// much says nothing.
func TestMany(t *testing.T) {
	at := time.Date(2024, 5, 15, 12, 0, 0, 0, time.UTC)
	if got := Candidates(Read("next month, or on 2024-05-20", at), Date); len(got) != 31 {
		t.Errorf("30 days and one: %v", got)
	}
	if got := Candidates(Read("next month, or on 2024-05-20 or 2024-05-21", at), Date); !slices.Equal(got, []string{"2024-05-20", "2024-05-21"}) {
		t.Errorf("too many days of a month: %v", got)
	}
	list := func(n int) string {
		var out []string
		for _, d := range daysFrom(at, 1, n) {
			out = append(out, d.Format(dateForm))
		}
		return strings.Join(out, ", ")
	}
	if got := Candidates(Read(list(31), at), Date); len(got) != 31 {
		t.Errorf("31 days: %d", len(got))
	}
	if got := Candidates(Read(list(32), at), Date); got != nil {
		t.Errorf("32 days: %v", got)
	}
	if got := Candidates(Read(list(8)+" at 10:00, 11:00, 12:00 and 13:00", at), Instant); got != nil {
		t.Errorf("32 instants: %v", got)
	}
	if got := Read(list(300), at); got != nil {
		t.Error("a text of 300 days says something")
	}
	for _, at := range []time.Time{{}, time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(1800, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if got := Read("tomorrow", at); got != nil {
			t.Errorf("%v: %v", at, got)
		}
	}
}

// TestTables: every rule of the tables means something, in every way it can be
// written: its names and its action are known.
func TestTables(t *testing.T) {
	at := time.Date(2024, 5, 15, 12, 0, 0, 0, time.UTC)
	samples := map[string]string{"year": "2024", "m": "30", "s": "15", "h": "10", "n": "3", "d": "5", "dd": "05", "mo": "06", "a": "5", "b": "6", "oh": "02", "om": "00", "day": "5", "nth": "5th",
		"clock": "10:00", "when": "11:00", "date": "2024-05-20", "dated": "2024-05-20", "end": "", "yy": "24", "other": "3000", "hm": "1500", "an": "an", "span": "next week", "range": "2024-05-20 to 2024-05-22"}
	tried := map[*rule]bool{}
	try := func(r *rule) {
		if tried[r] {
			return
		}
		tried[r] = true
		var text strings.Builder
		from, ahead := 0, 0
		for _, e := range r.elements {
			s, ok := samples[e.value]
			switch names := r.names[e.value]; {
			case e.value == "":
				s = e.words[len(e.words)-1]
			case e.value == "own", e.value == "ownh":
				s = r.names["n"][4].words[0]
			case e.value == "nth":
				s = "5" + r.names["suffix"][0].words[0]
			case e.value == "then":
				s, ahead = names[0].words[0], 1
			case e.value == "behind":
				s, from = names[0].words[0], 1
			case e.value == "unit": // of which there are halves, or in which days are counted
				unit := hour
				if r.action == "counted" {
					unit = day
				}
				s = strings.Join(names[slices.IndexFunc(names, func(n name) bool { return n.value == unit })].words, "")
			case !ok && len(names) > 0:
				s = strings.Join(names[0].words, "")
			case !ok:
				t.Errorf("%s has no {%s}", r.action, e.value)
			}
			if text.Len() > 0 && !e.glued && s != "" {
				text.WriteByte(' ')
			}
			text.WriteString(s)
		}
		p := newParser(text.String(), at)
		if n := p.longest(r.group, from); n == nil || n.to != len(p.words)-ahead {
			t.Errorf("%s: %q is not %s: %+v", r.group, text.String(), r.action, n)
		}
	}
	all := rules().groups[""]
	for _, rs := range all.words {
		for _, r := range rs {
			try(r)
		}
	}
	named := all.values
	for _, os := range all.names {
		named = append(named, os...)
	}
	for _, o := range named {
		for _, r := range o.rules {
			try(r)
		}
	}
	if len(tried) < 300 {
		t.Errorf("only %d rules", len(tried))
	}
}

func ExampleHolds() {
	at := time.Date(2024, 5, 15, 12, 0, 0, 0, time.FixedZone("", 2*3600))
	readings := Read("book a room next Friday from 3pm for two hours", at)
	fmt.Println(Candidates(readings, Instant))
	r, ok := Holds("2024-05-17T13:00:00Z", readings, at.Location())
	fmt.Println(ok, r.At)
	// Output:
	// [2024-05-17T15:00:00 2024-05-17T17:00:00 2024-05-24T15:00:00 2024-05-24T17:00:00]
	// true [{12 23} {29 32}]
}

func FuzzRead(f *testing.F) {
	f.Add("Friday at 3pm for an hour, or next week from 10 to 11; 2024-05-16T10:00:00Z", int64(1715767200))
	f.Add("am 15. Mai um halb elf und übermorgen früh", int64(0))
	f.Fuzz(func(t *testing.T, words string, unix int64) {
		at := time.Unix(unix, 0).UTC()
		rs := Read(words, at)
		for _, r := range rs {
			if len(r.Candidates) == 0 || len(r.Candidates) > MaxCandidates || len(r.At) == 0 {
				t.Fatalf("%q: %+v", words, r)
			}
			for _, p := range r.At {
				if p.Start < 0 || p.Start >= p.End || p.End > len(words) {
					t.Fatalf("%q: %+v", words, r)
				}
			}
		}
		for _, kind := range []Kind{Date, Clock, Instant} {
			for _, c := range Candidates(rs, kind) {
				if _, ok := Holds(c, rs, at.Location()); !ok {
					t.Fatalf("%q: %s does not hold", words, c)
				}
			}
		}
		if _, ok := Holds(words, nil, time.UTC); ok {
			t.Fatal("an argument holds of nothing")
		}
	})
}

func BenchmarkRead(b *testing.B) {
	at := time.Date(2024, 5, 15, 12, 0, 0, 0, time.UTC)
	for name, piece := range map[string]string{"prose": "please book a table for two, ", "days": "Friday, ", "clocks": "at 10:00 ", "ranges": "from Friday ", "numbers": "twenty ", "digits": "1-", "quotes": "((", "word": "x"} {
		text := strings.Repeat(piece, (128<<10)/len(piece))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Read(text, at)
			}
		})
	}
}
