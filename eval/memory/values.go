package memory

import (
	"fmt"
	"strconv"
	"strings"
)

// A question is what a slot answers: one attribute of one subject.
type question struct {
	predicate string // as it is declared
	words     string // as people say it
	value     func(*draw) value
}

// value is one value of a slot: as it is written, and in other words, in which
// it does not stand.
type value struct{ text, other string }

// The questions. Values are of the kinds that matter when they are wrong:
// people, companies, tools, money, dates, places.
var questions = []question{
	{"account_manager", "account manager", personValue},
	{"on_call_engineer", "on-call engineer", personValue},
	{"deputy", "deputy", personValue},
	{"employer", "employer", companyValue},
	{"supplier", "main supplier", companyValue},
	{"insurer", "insurer", companyValue},
	{"build_tool", "build tool", toolValue},
	{"database_release", "database release", toolValue},
	{"monthly_budget", "monthly budget", amountValue},
	{"day_rate", "day rate", amountValue},
	{"delivery_date", "delivery date", dateValue},
	{"review_date", "review date", dateValue},
	{"standup_time", "stand-up time", timeValue},
	{"meeting_room", "meeting room", roomValue},
	{"home_city", "home city", cityValue},
	{"payout_account", "payout account", accountValue},
	{"support_address", "support address", addressValue},
}

var (
	firstNames = strings.Fields("Marta Jonas Aiko Peter Lucia Omar Ingrid Tomas Nadia Felix Greta Samir Helena Viktor Yasmin Oscar Priya Daniel Elif Ruben Clara Anton Maren Luca Sofia Emil Noor Hugo Irene Stefan Tamar Niko Alma Bruno Carla Dario Edith Farid Gloria Henrik")
	lastNames  = strings.Fields("Lindqvist Okafor Brandt Moreau Tanaka Petrov Alvarez Nilsen Haddad Kowalski Varga Fischer Costa Demir Larsen Novak Silva Horvat Jansen Rossi Weber Dubois Eriksen Farouk Gruber Ibsen Keller Lopes Meyer Nagy Olsen Pereira Quist Richter Sato Toth Ulrich Vogel Wolff Zeman")
	firmNames  = strings.Fields("Northwind Halden Brightwater Ostrava Calder Meridian Silverline Tarnby Ravensholm Juniper Kestrel Lowfield Marlow Oakhurst Penrose Quillon Redwick Stonegate Thornbury Underhill Vexley Westmark Yarrow Zephyr")
	firmTrades = strings.Fields("Freight Foods Energy Textiles Instruments Paper Robotics Insurance Timber Analytics Marine Packaging")
	firmForms  = strings.Fields("Ltd GmbH Inc AB")
	toolNames  = strings.Fields("Trellis Anvil Pylon Cinder Ferrite Mosaic Lathe Quarry Spindle Tundra Beacon Hopper")
	projects   = strings.Fields("Aurora Basalt Cobalt Delta Ember Falcon Garnet Harbor Indigo Jasper Krypton Lumen Magnet Nimbus Onyx Polaris Quartz Rubicon Saffron Topaz")
	months     = strings.Fields("January February March April May June July August September October November December")
	cities     = []value{
		{"Bergen", "the Norwegian fjord city"}, {"Tromsø", "the town beyond the polar circle"}, {"Porto", "the Portuguese wine port"},
		{"Graz", "the Styrian capital"}, {"Ghent", "the old Flemish cloth town"}, {"Turku", "the former Finnish capital"},
		{"Malmö", "the city across the bridge from Denmark"}, {"Brno", "the Moravian capital"}, {"Seville", "the Andalusian capital"},
		{"Utrecht", "the Dutch cathedral town"}, {"Leeds", "the big town in West Yorkshire"}, {"Varna", "the Bulgarian sea port"},
		{"Trieste", "the Italian port by Slovenia"}, {"Aarhus", "the second city of Denmark"}, {"Lyon", "the French silk town"},
		{"Basel", "the Swiss city on the Rhine"},
	}
	units = strings.Fields("zero one two three four five six seven eight nine")
)

func personName(d *draw) string { return pick(d, firstNames) + " " + pick(d, lastNames) }

func personValue(d *draw) value {
	first, last := pick(d, firstNames), pick(d, lastNames)
	return value{first + " " + last, first[:1] + ". " + last}
}

func companyValue(d *draw) value {
	name := pick(d, firmNames) + " " + pick(d, firmTrades)
	form := pick(d, firmForms)
	return value{name + " " + form, "the people of " + name}
}

func toolValue(d *draw) value {
	name, release := pick(d, toolNames), strconv.Itoa(1+d.n(9))+"."+strconv.Itoa(d.n(20))
	return value{name + " " + release, "the " + release + " release of " + name}
}

func amountValue(d *draw) value {
	n := 1000 + 10*d.n(900)
	return value{fmt.Sprintf("%d,%03d EUR", n/1000, n%1000), fmt.Sprintf("%d euros", n)}
}

func dateValue(d *draw) value {
	y, m, day := 2026+d.n(2), 1+d.n(12), 1+d.n(28)
	return value{fmt.Sprintf("%d-%02d-%02d", y, m, day), fmt.Sprintf("%d %s %d", day, months[m-1], y)}
}

func timeValue(d *draw) value {
	h, m := 7+d.n(12), 5*d.n(12)
	half := "in the morning"
	if h >= 12 {
		half = "in the afternoon"
	}
	return value{fmt.Sprintf("%02d:%02d", h, m), fmt.Sprintf("%d minutes past %d %s", m, (h+11)%12+1, half)}
}

func roomValue(d *draw) value {
	a, b, c := 1+d.n(6), d.n(10), d.n(10)
	return value{fmt.Sprintf("Room %d%d%d", a, b, c), "room " + units[a] + " " + units[b] + " " + units[c]}
}

func cityValue(d *draw) value { return pick(d, cities) }

// accountValue is in no country: no such account exists.
func accountValue(d *draw) value {
	var b strings.Builder
	for range 18 {
		b.WriteByte(byte('0' + d.n(10)))
	}
	s := b.String()
	return value{"XX" + s, fmt.Sprintf("XX%s %s %s %s %s", s[:2], s[2:6], s[6:10], s[10:14], s[14:])}
}

func addressValue(d *draw) value {
	name, at := strings.ToLower(pick(d, toolNames)), strings.ToLower(pick(d, firmNames))
	return value{name + "@" + at + ".example", name + " at " + at + " dot example"}
}
