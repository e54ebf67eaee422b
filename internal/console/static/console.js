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
    pieces(row.querySelector(".by"), d.by);
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
    if (at.firstChild && at.firstChild.data === what.says) return;
    at.replaceChildren(what.says);
    if (!what.to) return;
    const to = document.createElement("a");
    to.href = what.to;
    to.textContent = "What was decided";
    at.append(" ", to);
  };

  // What the page says of its cards, with what leads on: once.
  let said = "";
  const saying = (links) => {
    if (said === (said = links.join())) return;
    calm = links.flatMap(([text, to]) => {
      const a = document.createElement("a");
      a.href = to;
      a.textContent = text;
      return [a, " "];
    });
    stream.replaceChildren(...calm);
  };
  const tell = () => {
    const here = document.querySelectorAll(".card:not(.gone)").length, links = [];
    fresh = fresh.filter((card) => !card.classList.contains("gone") && !card.contains(document.activeElement));
    if (fresh.length) links.push([fresh.length === 1 ? "A new question waits: go to it." : `${fresh.length} new questions wait: go to the first.`, "#" + fresh[0].id]);
    if (waiting().length > here) links.push(["More wait: show them.", "/approvals"]);
    else if ($(".card.gone")) links.push(["What waits has changed: show it.", "/approvals"]);
    saying(links);
  };

  // Cards stay where they are: what an agent does must not change what a click is about to hit.
  // One that waits no more says what became of it.
  const known = {}, waiting = () => stream.dataset.ids.split(" ").filter(Boolean);
  let fresh = []; // cards that came, and nobody went to yet
  const settle = (ids) => {
    stream.dataset.ids = ids;
    for (const card of document.querySelectorAll(".card")) {
      const id = card.id.slice(2);
      if (waiting().includes(id)) continue;
      let went = card.querySelector(".went");
      if (!went) {
        card.classList.add("gone");
        for (const e of card.querySelectorAll("input, button")) e.disabled = true;
        went = document.createElement("p");
        went.className = "went";
        card.querySelector(".buttons").append(went);
      }
      became(went, known[id] || { says: "It waits no more." });
    }
    if (waiting().length && $(".empty")) $(".empty").hidden = true;
  };

  // A new card comes below the others. The server makes it, as it makes the page.
  const maxCards = 60;
  let asking = false, late = false;
  const more = () => {
    if (late = asking) return;
    asking = true;
    const page = new XMLHttpRequest();
    page.responseType = "document";
    page.open("GET", "/approvals?again");
    page.addEventListener("loadend", () => {
      asking = false;
      const from = page.status === 200 && page.response && page.response.querySelector("#stream[data-ids]");
      if (!from) { saying([["What waits has changed: show it.", "/approvals"]]); return; }
      for (const came of page.response.querySelectorAll(".card")) {
        if (document.getElementById(came.id) || document.querySelectorAll(".card").length >= maxCards) continue;
        const card = document.importNode(came, true);
        card.classList.add("new");
        hold(card);
        $("#cards").append(card);
        fresh.push(card);
      }
      settle(from.dataset.ids);
      tell();
      if (late) more();
    });
    page.send();
  };
  if ($("#cards")) $("#cards").addEventListener("focusin", tell);

  const waits = (w) => {
    for (const count of document.querySelectorAll(".count")) {
      count.hidden = w.count === 0;
      count.firstElementChild.textContent = w.count;
    }
    document.title = (w.count ? `(${w.count}) ` : "") + document.title.replace(/^\(\d+\) /, "");
    if (!stream || stream.dataset.ids === undefined) return;
    for (const held of document.querySelectorAll(".card .held")) held.classList.toggle("over", (w.over || []).includes(held.closest(".card").id.slice(2)));
    Object.assign(known, w.gone || {});
    const ids = w.ids || [], there = waiting();
    if (asking || ids.some((id) => !there.includes(id))) { more(); return; }
    settle(ids.join(" "));
    if ($(".card.gone") || said) tell();
  };

  const told = (name, f) => source.addEventListener(name, (e) => {
    wait = 1000;
    if (stream) stream.classList.add("follows"); // what is asked from here on is held
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
        stream.classList.remove("follows");
        stream.classList.add("lost");
        stream.textContent = source.readyState === EventSource.CLOSED
          ? "Not followed. If you were signed out, sign in again in any tab; this page goes on by itself then."
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
  const since = new WeakMap();
  const hold = (card) => {
    const buttons = card.querySelectorAll("button"), now = performance.now();
    since.set(card, now);
    for (const b of buttons) b.setAttribute("aria-disabled", "true");
    setTimeout(() => {
      if (since.get(card) === now) for (const b of buttons) b.removeAttribute("aria-disabled");
    }, 1000);
  };
  const shown = () => document.querySelectorAll(".card").forEach(hold);
  const early = (e) => {
    const form = e.target.closest(".card form");
    if (!form || e.type === "click" && !e.target.closest("button")) return;
    if (document.hidden || e.timeStamp - since.get(form.closest(".card")) < 700) { e.preventDefault(); e.stopPropagation(); }
  };
  shown();
  addEventListener("pageshow", shown);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) shown(); });
  document.addEventListener("click", early, true);
  document.addEventListener("submit", early, true);

  // For how long a call is still held, counted from when its card came.
  const until = new WeakMap();
  const count = () => {
    for (const left of document.querySelectorAll(".card .left")) {
      const now = performance.now();
      if (!until.has(left)) until.set(left, now + 1000 * left.dataset.left);
      const n = Math.ceil((until.get(left) - now) / 1000);
      left.textContent = n > 0 ? `, for ${n} s more` : "";
    }
  };
  if ($("#cards")) { count(); setInterval(count, 1000); }

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
