// What an open page does beside what the server sent: it follows the stream of events.
// Texts go into it as texts alone. Without this every page is whole, and is read anew.
(() => {
  "use strict";
  const $ = (s) => document.querySelector(s);
  document.documentElement.classList.add("scripted");
  const maxRows = 500;
  const place = $("[data-tail]");
  const stream = $("#stream");
  let calm = stream ? [...stream.childNodes] : [];
  let source = null;
  let last = -1;
  let wait = 1000;

  // A page that reads itself anew is nobody's click.
  const again = () => {
    const to = new URL(location);
    to.searchParams.set("again", "");
    location.replace(to);
  };

  const pieces = (into, all) => {
    for (const p of all || []) {
      if (!p.Hidden && !p.Code) { into.append(p.Text); continue; }
      const drawn = document.createElement(p.Hidden ? "span" : "code");
      if (p.Hidden) drawn.className = "hid";
      drawn.textContent = p.Text;
      into.append(drawn);
    }
  };

  const decided = (d) => {
    last = Math.max(last, d.index);
    const rows = $("#rows"), model = $("template#row");
    if (!model || document.querySelector(`tr[data-index="${d.index}"]`)) return;
    if (!rows) { again(); return; }
    const row = model.content.cloneNode(true).querySelector("tr");
    row.dataset.index = d.index;
    row.className = "new";
    const when = row.querySelector("time");
    when.dateTime = d.time;
    when.textContent = d.stamp;
    const word = row.querySelector(".word");
    word.classList.add(d.word);
    word.textContent = d.word;
    const call = row.querySelector(".call > a");
    call.href = "/d/" + d.id;
    pieces(call, d.tool);
    pieces(row.querySelector(".act"), d.act);
    row.querySelector(".act").title = d.whole;
    row.querySelector(".note").textContent = d.note;
    row.querySelector(".reason").textContent = d.reason;
    for (const m of d.missing || []) {
      const li = document.createElement("li");
      pieces(li, m);
      row.querySelector(".missing").append(li);
    }
    const id = row.querySelector(".id a");
    id.href = "/s/" + d.session;
    id.title = d.session;
    pieces(id, d.called);
    id.after("/" + d.n);
    rows.prepend(row);
    while (rows.rows.length > maxRows) rows.deleteRow(-1);
  };

  // How a call ended is known after its row came.
  const outcome = (o) => {
    const call = document.querySelector(`#rows .call > a[href="/d/${o.id}"]`);
    const word = call && call.closest("tr").querySelector(".word");
    if (!word || !["accepted", "unknown"].includes(word.textContent)) return;
    word.className = "word " + o.word;
    word.textContent = o.word;
    let note = call.parentElement.querySelector(".note");
    if (!note) {
      note = document.createElement("span");
      note.className = "note";
      call.after(" ", note);
    }
    note.textContent = o.note;
  };

  const became = (at, what) => {
    at.replaceChildren(what.says);
    if (!what.to) return;
    const to = document.createElement("a");
    to.href = what.to;
    to.textContent = "What was decided";
    at.append(" ", to);
  };

  // Cards stay where they are: what an agent does must not change what a click is about to hit.
  const waits = (w) => {
    const count = $("#waiting"), ids = w.ids || [];
    count.hidden = w.count === 0;
    count.firstElementChild.textContent = w.count;
    if (!stream || stream.dataset.ids === undefined) return;
    for (const held of document.querySelectorAll(".card .held")) held.classList.toggle("over", (w.over || []).includes(held.closest(".card").id.slice(2)));
    if (ids.join(" ") === stream.dataset.ids) return;
    const cards = document.querySelectorAll(".card");
    // An empty list fills by itself, unless somebody is about to press something else.
    if (!cards.length && ids.length && [document.body, $("main")].includes(document.activeElement)) { again(); return; }
    for (const card of cards) {
      const id = card.id.slice(2), what = (w.gone || {})[id];
      if (ids.includes(id)) continue;
      if (card.classList.contains("gone")) { // it is known by now what became of it
        if (what) became(card.querySelector(".went"), what);
        continue;
      }
      card.classList.add("gone");
      for (const e of card.querySelectorAll("input, button")) e.disabled = true;
      const gone = document.createElement("p");
      gone.className = "went";
      became(gone, what || { says: "It waits no more." });
      card.querySelector(".buttons").append(gone);
    }
    const none = $(".empty");
    if (none && ids.length) none.hidden = true;
    if (stream.querySelector("a")) return;
    const show = document.createElement("a");
    show.href = "/approvals";
    show.textContent = "What waits has changed: show it";
    stream.replaceChildren(show);
    calm = [show];
  };

  const told = (name, f) => source.addEventListener(name, (e) => {
    wait = 1000;
    if (stream && stream.classList.contains("lost")) {
      stream.classList.remove("lost");
      stream.replaceChildren(...calm);
    }
    f(JSON.parse(e.data));
  });

  const follow = () => {
    const to = new URL(place.dataset.tail, location.href);
    if (last >= 0) to.searchParams.set("after", last);
    if (source) source.close();
    source = new EventSource(to);
    told("decision", decided);
    told("outcome", outcome);
    told("waiting", waits);
    told("quiet", () => {});
    told("behind", () => { if ($("template#row")) again(); });
    told("check", (state) => {
      const at = $("#check");
      if (!at || !state) return;
      at.hidden = false;
      at.textContent = state;
      if (!state.startsWith("Checking") && at.classList.contains("unknown")) again();
      else if (state.startsWith("Checking")) at.className = "say unknown";
    });
    source.addEventListener("error", () => {
      if (stream) {
        stream.classList.add("lost");
        stream.textContent = source.readyState === EventSource.CLOSED
          ? "Not followed. If you were signed out, writ console prints a new link; this page goes on by itself then."
          : "The gateway is not there. This page goes on when it is.";
      }
      if (source.readyState !== EventSource.CLOSED) return; // the browser tries by itself
      setTimeout(() => { if (!document.hidden) follow(); }, wait);
      wait = Math.min(wait * 2, 10000);
    });
  };

  if (place) {
    if (!document.hidden) follow();
    // A tab in the background is nobody who watches, and a browser has six connections.
    document.addEventListener("visibilitychange", () => {
      if (source) source.close();
      if (!document.hidden) follow();
    });
  }

  // Who says yes has seen to what: a click that was on its way when a card came up is not his
  // answer to it. The style holds the buttons still as long, also before this runs.
  let since = 0, still = 0;
  const shown = () => {
    since = performance.now();
    const buttons = document.querySelectorAll(".card button");
    for (const b of buttons) b.setAttribute("aria-disabled", "true");
    clearTimeout(still);
    still = setTimeout(() => { for (const b of buttons) b.removeAttribute("aria-disabled"); }, 1000);
  };
  const early = (e) => {
    if (!e.target.closest(".card form") || e.type === "click" && !e.target.closest("button")) return;
    if (document.hidden || e.timeStamp - since < 700) { e.preventDefault(); e.stopPropagation(); }
  };
  shown();
  addEventListener("pageshow", shown);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) shown(); });
  document.addEventListener("click", early, true);
  document.addEventListener("submit", early, true);

  // What was sent is not overtaken by a page that is read anew.
  document.addEventListener("submit", (e) => { if (source && !e.defaultPrevented) source.close(); });

  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.matches("input:not([type=radio]), select, textarea")) return;
    const cards = [...document.querySelectorAll(".card:not(.gone)")];
    const here = cards.findIndex((c) => c.contains(document.activeElement));
    const card = cards[Math.max(here, 0)];
    const to = {
      j: cards[Math.min(here + 1, cards.length - 1)],
      k: card && cards[Math.max(here - 1, 0)],
      y: card && (card.querySelector("input[name=code]") || card.querySelector("button")),
      n: card && card.querySelector("button.no"),
      r: stream && stream.querySelector("a"),
    }[e.key];
    if (!to) return;
    e.preventDefault();
    to.focus();
  });
})();
