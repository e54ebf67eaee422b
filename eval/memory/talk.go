package memory

import (
	"strconv"
	"strings"
)

// topic is something a person may tell of himself. {n} is the person, {x} a
// detail.
type topic struct {
	details []string
	told    []string // what is said: the evidence
	asked   string   // what was it, in other words
	when    string   // when was it
	hinted  string   // what has to be inferred
	beside  []string // of the same things, by anybody, and no evidence
}

func list(s string) []string { return strings.Split(s, ", ") }

func lines(s string) []string { return strings.Split(s, " | ") }

var topics = []topic{
	{list("beagle, greyhound, terrier, spaniel, poodle"), lines("We finally brought a {x} home from the shelter and she sleeps on my feet already | The shelter called and now a {x} lives with us"),
		"Which breed of dog did {n} adopt?", "When did {n} adopt the dog?", "Why does {n} have to go for a walk every evening?",
		lines("My neighbour's dog kept barking the whole night again | They want to build a new shelter by the river")},
	{list("Valencia, Warsaw, Athens, Dublin, Oslo"), lines("I ran the {x} marathon on Sunday and my knees still hurt | Forty-two kilometres through {x} and I did not stop once"),
		"In which city did {n} run the marathon?", "When did {n} run the marathon?", "What made {n} so tired of stairs?",
		lines("Running in this rain is not for me | The roads are closed for some marathon next month")},
	{list("cello, oboe, banjo, harp, trumpet"), lines("I started {x} lessons with a teacher two streets away | My first {x} lesson was a disaster and I loved it"),
		"What instrument is {n} learning to play?", "When did {n} begin music lessons?", "What may the people next door of {n} complain about?",
		lines("The lesson at the pool was cancelled | A friend sells his old piano")},
	{list("pottery, archery, calligraphy, fencing, beekeeping"), lines("I signed up for a {x} course at the community centre | The {x} course starts and I have bought everything for it"),
		"What kind of class did {n} enrol in?", "When did {n} sign up for the course?", "What new hobby has {n} taken up?",
		lines("The community centre gets a new roof | Courses are so expensive these days")},
	{list("nurse, translator, surveyor, gardener, bookbinder"), lines("I got the job, from May I work as a {x} | They offered me the post and I am a {x} now"),
		"What is the new profession of {n}?", "When did {n} get the new job?", "How does {n} earn a living?",
		lines("My cousin hates his job more every week | They are hiring at the station")},
	{list("scaphoid, collarbone, ankle, elbow, wrist"), lines("I fell off my bike and broke my {x} | The doctor says my {x} is broken and needs six weeks"),
		"Which bone did {n} break in the accident?", "When did {n} have the bicycle accident?", "Why can {n} not carry anything heavy?",
		lines("The bike shop was closed | The doctor is on holiday until the tenth")},
	{list("Elena, Milo, Ruth, Otto, Ines"), lines("My sister had her baby and they named it {x} | I am an aunt at last and {x} is so tiny"),
		"What is the name of the newborn in {n}'s family?", "When was the baby in {n}'s family born?", "Whom does {n} want to knit something small for?",
		lines("The baby upstairs cries all night | My sister never answers her phone")},
	{list("turquoise, ochre, crimson, lavender, mustard"), lines("We painted the kitchen {x} and it took three coats | The kitchen walls are {x} now and everybody has an opinion"),
		"What colour are the kitchen walls of {n}?", "When did {n} paint the kitchen?", "What did {n} do to the home?",
		lines("The kitchen sink is leaking again | Paint has become so dear")},
	{list("peanuts, lactose, shellfish, celery, pollen"), lines("It turns out I am allergic to {x}; the test was clear | The rash comes from {x} and I have to avoid it from now on"),
		"What is {n} allergic to?", "When did {n} find out about the allergy?", "What should a cook know about {n}?",
		lines("The pharmacy had nothing against the cold | Everybody at work is ill")},
	{list("caravan, kayak, tandem, telescope, sewing machine"), lines("I bought a second-hand {x} from a man in the valley | There was a {x} in the small ads and I could not resist"),
		"What used item did {n} purchase?", "When did {n} purchase something second-hand?", "What takes up all the room in {n}'s garage?",
		lines("The small ads are full of rubbish | The valley was under fog all day")},
	{list("watercolours, woodcuts, ceramics, photographs, tapestries"), lines("My {x} hang in the gallery by the bridge until the end of the month | The gallery took six of my {x} for the spring show"),
		"What does {n} exhibit?", "When was {n}'s work put on show?", "What creative work is {n} proud of?",
		lines("The gallery café has the best cake | The bridge is closed for repairs")},
	{list("Lisbon, Kraków, Nantes, Bologna, Riga"), lines("We are moving to {x} in the autumn and the flat is signed for | The removal firm is booked and {x} will be home"),
		"Where is {n} going to live?", "When did {n} decide to relocate?", "Why is {n} packing boxes?",
		lines("Moving house is the worst thing there is | The flat below has been empty for a year")},
	{list("migraine, insomnia, back pain, tinnitus, hay fever"), lines("The {x} is so much better since I drink no coffee | I gave up coffee and the {x} was gone within a week"),
		"Which complaint improved when {n} stopped drinking coffee?", "When did {n} give up coffee?", "What health problem did {n} have?",
		lines("The coffee here tastes of nothing | I need another coffee before I can think")},
	{list("refugees, pensioners, school children, prisoners, farmers"), lines("On Thursdays I read letters for {x} who have nobody to help | I volunteer with {x} every Thursday now"),
		"Whom does {n} help as a volunteer?", "When did {n} start volunteering?", "What does {n} do for other people?",
		lines("Thursday is the only day the market is open | Nobody writes letters any more")},
	{list("violet, walnut, saffron, rhubarb, quince"), lines("I won second prize with my {x} cake at the village fair | My {x} cake came second and the judges asked for the recipe"),
		"Which cake did {n} win a prize for?", "When did {n} win a prize?", "What is {n} good at baking?",
		lines("There was no cake left when I came | The fair was rained off last year")},
	{list("geology, Byzantine history, marine biology, acoustics, linguistics"), lines("I went back to university and it is {x} this time | The faculty accepted me for {x} and I am the oldest by twenty years"),
		"What subject is {n} studying?", "When did {n} return to university?", "What degree will {n} have one day?",
		lines("The university canteen is open to all | History was never my best subject")},
	{list("hedgehog, owl, swift, squirrel, heron"), lines("I found an injured {x} and drove it to the rescue station | The {x} I picked up by the road is being fed with a syringe"),
		"Which wild animal did {n} rescue?", "When did {n} find the hurt animal?", "Who at {n}'s place needs special feeding?",
		lines("The road to the coast is full of lorries | Animals belong outside if you ask me")},
	{list("Thursday, Friday, Monday, Tuesday, Wednesday"), lines("The choir meets on {x} from now on and I sing alto | I joined the choir and we rehearse every {x}"),
		"On which day does {n} practise singing?", "When did {n} join the choir?", "Which evening is {n} never free?",
		lines("The choir from the next town was on the radio | My voice is gone since the weekend")},
	{list("Wim, Agnes, Leopold, Tilda, Rashid"), lines("My grandfather {x} died in his sleep on Saturday | We buried {x} beside my grandmother and the whole street came"),
		"What was the name of the relative {n} lost?", "When did {n} lose a relative?", "Why was {n} in mourning?",
		lines("My grandmother's clock still runs | The whole street was dark after the storm")},
	{list("goalkeeper, referee, left wing, coach, treasurer"), lines("The women's team asked me to be their {x} and I said yes | I am the new {x} of the team and know nothing about it"),
		"What role does {n} have in the team?", "When did {n} take on a role in sports?", "What keeps {n} busy at weekends?",
		lines("The match was so boring that I left | Our team lost again")},
	{list("lighthouse, windmill, monastery, railway station, water tower"), lines("We slept in an old {x} on our holiday and it was magic | The holiday was in a converted {x} without electricity"),
		"In what sort of building did {n} stay on vacation?", "When was {n} on vacation?", "Where did {n} go without light at night?",
		lines("The holiday traffic is a nightmare | There was no electricity for an hour")},
	{list("wallet, passport, wedding ring, phone, car keys"), lines("Somebody handed in my {x} at the lost property office | I lost my {x} on the tram and a boy brought it back"),
		"What did {n} lose and get back?", "When did {n} get back something that was lost?", "For what does {n} thank an honest finder?",
		lines("The tram was late and full | The office closes at noon")},
}

// heap is something that is told several times, each time another: a question
// for all of them has its evidence in several sessions.
type heap struct {
	details []string
	told    []string
	asked   string
}

var heaps = []heap{
	{list("The Glass Harbour, Salt Roads, A Winter Ledger, The Ninth Cartographer, Small Hours"), lines("I finished {x} last night and cried at the end | {x} is the best novel I have had in my hands for years"), "Which books has {n} read?"},
	{list("ramen, paella, goulash, dumplings, moussaka"), lines("Tonight I made {x} from scratch for six people | I tried to make {x} and the smoke alarm went off"), "Which dishes has {n} cooked?"},
	{list("Madeira, the Dolomites, Gotland, Crete, the Hebrides"), lines("We are back from {x} and I still have sand in my shoes | Greetings from {x}; the view is better than any picture"), "Which places has {n} travelled to?"},
	{list("a string quartet, a brass band, a jazz trio, a punk group, a gospel ensemble"), lines("Yesterday we heard {x} in the old factory | The evening with {x} was so loud and so good"), "What kinds of concerts has {n} attended?"},
}

var smallTalk = lines("How have you been, it has been ages | That sounds wonderful and I am happy for you | Oh no I hope it gets better soon | I have been so busy that I forgot to answer | " +
	"The weather here changes every hour | Did you see the news this morning | Thank you for asking | We should meet more often | I can hardly believe it is that late in the year already | " +
	"Let me know if you need anything | My day was quiet and I read a little | You always know what to say | That reminds me of when we were at school | I will tell you more next time | " +
	"What are your plans for the weekend | I am proud of you | It was good to hear your voice | I had to laugh when I read that | Tell me everything | The train was late again | " +
	"I slept badly and had too much to do | Take care of yourself | Maybe we can cook something together | That must have been hard | I would love to see a picture of it")

// turn is one thing said in a conversation.
type turn struct {
	speaker string
	text    string
	session int
}

func (t *turn) said() string { return t.speaker + ": " + t.text + "." }

// probe is one question with where its evidence stands.
type probe struct {
	category int
	text     string
	gold     []int // turns
}

// The categories, by the numbers that are usual for such data.
const (
	severalSessions = 1
	whenWasIt       = 2
	inferredFrom    = 3
	oneSession      = 4
	wrongPerson     = 5 // apart: nothing is so that is asked
)

// conversation is two people over several sessions.
type conversation struct {
	turns    []turn
	sessions int
	probes   []probe
}

const sessionsOfOne = 24

// newConversation draws a conversation: who tells what in which session, with
// turns about the same things beside it that are no evidence, and small talk.
func newConversation(seed uint64, i int) *conversation {
	d := newDraw(seed, "conversation-"+strconv.Itoa(i))
	// Those of one seed have different names, as far as there are: they may stand
	// in one memory.
	who := some(newDraw(seed, "who"), len(firstNames), firstNames)[2*i%len(firstNames):][:2]
	type event struct {
		person, topic int // topic -1 - h is a heap
		text          string
	}
	said := make([][]event, sessionsOfOne)
	type told struct{ session, at int }
	where := map[[2]int][]told{} // person and topic
	add := func(person, topic int, text string) {
		s := d.n(sessionsOfOne)
		where[[2]int{person, topic}] = append(where[[2]int{person, topic}], told{s, len(said[s])})
		said[s] = append(said[s], event{person, topic, text})
	}
	fill := func(text, x string, person int) string {
		return strings.NewReplacer("{x}", x, "{n}", who[person]).Replace(text)
	}
	for t := range topics {
		for p := range who {
			if d.in(65) {
				add(p, t, fill(pick(d, topics[t].told), pick(d, topics[t].details), p))
			}
		}
	}
	for h := range heaps {
		for p := range who {
			for _, x := range some(d, 2+d.n(2), heaps[h].details) {
				add(p, -1-h, fill(pick(d, heaps[h].told), x, p))
			}
		}
	}
	c := &conversation{sessions: sessionsOfOne}
	at := map[told]int{} // the turn something was told in
	for s, events := range said {
		speaker := d.n(2)
		chat := func() {
			text := pick(d, smallTalk)
			if d.in(35) {
				text = pick(d, topics[d.n(len(topics))].beside)
			}
			c.turns = append(c.turns, turn{who[speaker], text, s})
			speaker = 1 - speaker
		}
		chat()
		for k, e := range events {
			for range 1 + d.n(4) {
				chat()
			}
			speaker = e.person
			at[told{s, k}] = len(c.turns)
			c.turns = append(c.turns, turn{who[speaker], e.text, s})
			speaker = 1 - speaker
		}
		for range 2 + d.n(5) {
			chat()
		}
	}
	gold := func(ts []told) (out []int) {
		for _, t := range ts {
			out = append(out, at[t])
		}
		return out
	}
	for t := range topics {
		for p := range who {
			mine, other := where[[2]int{p, t}], where[[2]int{1 - p, t}]
			switch {
			case len(mine) > 0:
				q := probe{category: oneSession, text: topics[t].asked, gold: gold(mine)}
				switch k := d.n(100); {
				case k < 30:
					q.category, q.text = whenWasIt, topics[t].when
				case k < 42:
					q.category, q.text = inferredFrom, topics[t].hinted
				}
				q.text = fill(q.text, "", p)
				c.probes = append(c.probes, q)
			case len(other) > 0:
				c.probes = append(c.probes, probe{wrongPerson, fill(topics[t].asked, "", p), gold(other)})
			}
		}
	}
	for h := range heaps {
		for p := range who {
			c.probes = append(c.probes, probe{severalSessions, fill(heaps[h].asked, "", p), gold(where[[2]int{p, -1 - h}])})
		}
	}
	return c
}
