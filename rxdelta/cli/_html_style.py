"""The look of the page that `rxdelta inspect --html` writes."""

__all__ = ["STYLE"]

STYLE = """
:root {
  color-scheme: light dark;
  --page: #f6f5f2; --card: #fff; --line: #e2dfd8; --grid: #ebe8e1; --ink: #1d2026; --soft: #5d6370;
  --gap: #efece5; --gap-ink: #6a6558; --accent: #0b6b5d;
  --good: #17714a; --warn: #8f5600; --bad: #bb1f2e; --good-back: #e2f3ea; --warn-back: #fcefd8; --bad-back: #fde6e7;
  --text: #2a63c9; --reasoning: #7a4bc4; --call: #b2580c; --result: #1c7a55; --media: #b3307f; --other: #59616e;
  --mono: ui-monospace, "SF Mono", SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #121418; --card: #1a1d23; --line: #2d323b; --grid: #262a32; --ink: #e8e9ec; --soft: #a1a8b5;
    --gap: #22262d; --gap-ink: #a29c8c; --accent: #52cdb6;
    --good: #5fd09b; --warn: #edb256; --bad: #ff8088; --good-back: #16302a; --warn-back: #33291a; --bad-back: #3b1f24;
    --text: #7ba8ff; --reasoning: #bb97fb; --call: #f0a052; --result: #5fcf9d; --media: #f283c0; --other: #a3acba;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; padding: 2rem 1.25rem 4rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
}
main { max-width: 70rem; margin: 0 auto; }
h1, h2, h3, p, dl, dd, figure, table { margin: 0; }
h1 { font-size: 1.5rem; line-height: 1.25; font-weight: 650; letter-spacing: -.01em; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; font-weight: 650; margin: 2.25rem 0 .75rem; overflow-wrap: anywhere; }
h3 { font-size: .95rem; font-weight: 600; margin: 1.25rem 0 .5rem; }
a { color: inherit; }
a:focus-visible, summary:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
bdi, .says { unicode-bidi: isolate; }
.above { color: var(--soft); font-size: .85rem; margin-bottom: .2rem; }
.below { color: var(--soft); margin-top: .3rem; }

.badge {
  display: inline-block; padding: .05rem .6rem; border-radius: 1rem; font-size: .85rem; font-weight: 600;
  vertical-align: .15em; white-space: nowrap;
}
.good { color: var(--good); background: var(--good-back); }
.warn { color: var(--warn); background: var(--warn-back); }
.bad { color: var(--bad); background: var(--bad-back); }
.banner { margin: 1rem 0 0; padding: .7rem 1rem; border-radius: .6rem; overflow-wrap: anywhere; }

.tiles { display: grid; grid-template-columns: repeat(4, minmax(0, 1fr)); gap: .7rem; margin-top: 1.25rem; }
.tiles.in-5 { grid-template-columns: repeat(5, minmax(0, 1fr)); }
.tiles.in-3 { grid-template-columns: repeat(3, minmax(0, 1fr)); }
.tiles > div { background: var(--card); border: 1px solid var(--line); border-radius: .7rem; padding: .65rem .85rem; }
.tiles dt { color: var(--soft); font-size: .8rem; }
.tiles dd { font-size: 1.3rem; font-weight: 620; line-height: 1.3; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.tiles dd small { display: block; font-size: .8rem; font-weight: 400; color: var(--soft); line-height: 1.35; }
.tiles dd.is-bad { color: var(--bad); }
.tiles dd.is-warn { color: var(--warn); }

.timeline { margin-top: 1.25rem; background: var(--card); border: 1px solid var(--line); border-radius: .7rem; padding: .9rem 1rem .5rem; }
.lane { display: grid; grid-template-columns: 13.5rem minmax(0, 1fr); column-gap: .9rem; align-items: stretch; }
.lane + .lane { border-top: 1px solid var(--grid); }
.lane.axis + .lane, .lane.foot { border-top: 1px solid var(--line); }
.lane.head { border-top: 1px solid var(--line); }
.lane.head .name { font-weight: 650; grid-column: 1 / -1; padding: .5rem 0 .3rem; }
.name { display: flex; gap: .5rem; align-items: center; min-width: 0; font-size: .88rem; padding: .25rem 0; }
.name a { text-decoration: none; min-width: 0; display: block; }
.name a:hover { text-decoration: underline; }
.label { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; overflow-wrap: anywhere; line-height: 1.3; }
.sub { color: var(--soft); font-size: .78rem; line-height: 1.3; display: block; font-variant-numeric: tabular-nums; }
.dot { flex: none; width: .65rem; height: .65rem; border-radius: .2rem; background: var(--hue); align-self: flex-start; margin-top: .3rem; }
.lane > svg { display: block; width: 100%; height: 100%; min-height: 30px; overflow: visible; }
.lane.axis > svg { height: 40px; }
.grid { stroke: var(--grid); }
.gap { fill: var(--gap); }
.gap-words, .tick-words { font-size: 11px; fill: var(--soft); font-variant-numeric: tabular-nums; }
.gap-words { fill: var(--gap-ink); }
.flag { stroke: var(--accent); stroke-width: 1.5; stroke-dasharray: 3 3; }
.flag-words { font-size: 11px; font-weight: 600; fill: var(--accent); }
.stop { stroke: var(--soft); stroke-width: 1.5; }
.stop-words { font-size: 11px; font-weight: 600; fill: var(--soft); }
.bar { fill: var(--hue); fill-opacity: .16; stroke: var(--hue); stroke-opacity: .45; }
.open-end { stroke-dasharray: 4 3; }
.wave { stroke: var(--hue); stroke-width: 1.6; fill: none; stroke-linecap: round; vector-effect: non-scaling-stroke; }
.run { fill: url(#hatch); stroke: var(--hue); stroke-opacity: .6; }
.mark { fill: var(--soft); }
.mark.wrong { fill: var(--bad); stroke: var(--card); stroke-width: 1.5; }
.hatch { stroke: var(--call); stroke-width: 1.5; stroke-opacity: .5; }
.of-text { --hue: var(--text); } .of-reasoning { --hue: var(--reasoning); } .of-call { --hue: var(--call); }
.of-result { --hue: var(--result); } .of-media { --hue: var(--media); } .of-bad { --hue: var(--bad); }
.of-other { --hue: var(--other); }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; padding: .6rem 0 .3rem; color: var(--soft); font-size: .8rem; }
.legend span { display: inline-flex; align-items: center; gap: .4rem; }
.legend i { width: .9rem; height: .7rem; border-radius: .15rem; display: inline-block; }
.legend .key-flag { width: 0; height: .9rem; border-left: 2px dashed var(--accent); border-radius: 0; }
.legend .key-gap { background: var(--gap); border: 1px solid var(--line); }
.legend .key-run { background: repeating-linear-gradient(45deg, transparent 0 2px, var(--call) 2px 3px); border: 1px solid var(--call); }
.legend .key-wrong { width: .7rem; background: var(--bad); clip-path: polygon(50% 0, 100% 100%, 0 100%); }

details { background: var(--card); border: 1px solid var(--line); border-radius: .7rem; margin-top: .6rem; }
summary { cursor: pointer; padding: .6rem .9rem; display: flex; flex-wrap: wrap; gap: .1rem .6rem; align-items: baseline; overflow-wrap: anywhere; list-style: none; }
summary::-webkit-details-marker { display: none; }
summary::before { content: "›"; color: var(--soft); font-weight: 700; width: .6rem; transition: transform .12s; flex: none; }
details[open] > summary::before { transform: rotate(90deg); }
summary .dot { align-self: center; margin: 0; }
summary b { font-weight: 600; min-width: 0; }
summary .sub { font-size: .85rem; min-width: 0; }
.inside { padding: 0 .9rem .9rem; min-width: 0; }
.inside details { background: none; }
.inside > :first-child { margin-top: 0; }
pre {
  margin: .5rem 0 0; padding: .7rem .85rem; background: var(--page); border-radius: .5rem; font: .83rem/1.5 var(--mono);
  white-space: pre-wrap; overflow-wrap: anywhere; max-height: 30rem; overflow-y: auto; unicode-bidi: isolate;
}
pre.prose { font: inherit; font-size: .93rem; }
.more { color: var(--soft); font-size: .85rem; margin-top: .4rem; }
ul { margin: .4rem 0 0; padding-left: 1.2rem; }
li { overflow-wrap: anywhere; }
.facts { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .2rem 1.2rem; font-size: .9rem; }
.facts dt { color: var(--soft); }
.facts dd { overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .83rem; font-variant-numeric: tabular-nums; table-layout: auto; }
caption { text-align: left; color: var(--soft); padding: .3rem 0; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
th { text-align: left; font-weight: 600; color: var(--soft); border-bottom: 1px solid var(--line); padding: .25rem .8rem .25rem 0; white-space: nowrap; }
td { border-bottom: 1px solid var(--grid); padding: .2rem .8rem .2rem 0; vertical-align: top; }
td.n, th.n { text-align: right; white-space: nowrap; }
td.says { font-family: var(--mono); font-size: .8rem; width: 99%; overflow-wrap: anywhere; }
tr.wrong td { color: var(--bad); }
td.what { white-space: nowrap; }

@media (max-width: 40rem) {
  body { padding: 1.25rem .75rem 3rem; }
  h1 { font-size: 1.25rem; }
  .lane > svg { height: 30px; }
  .tiles, .tiles.in-3, .tiles.in-5 { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .5rem; }
  .tiles dd { font-size: 1.1rem; }
  .timeline { padding: .7rem .7rem .4rem; }
  .lane { grid-template-columns: minmax(0, 1fr); padding: .25rem 0; }
  .name { padding: 0 0 .15rem; }
  .name a { display: flex; flex-wrap: wrap; gap: 0 .5rem; align-items: baseline; }
  .odd { display: none; }
  .facts { grid-template-columns: minmax(0, 1fr); gap: 0; }
  .facts dd { margin-bottom: .4rem; }
  .wide { display: none; }
  td, th { padding-right: .5rem; }
  td.what { white-space: normal; }
}
@media (prefers-reduced-motion: reduce) { summary::before { transition: none; } }
@media (forced-colors: active) { .bar, .gap, .run { stroke: CanvasText; } .dot { border: 1px solid CanvasText; } }
@media print {
  body { background: #fff; padding: 0; font-size: 11pt; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .tiles > div, .timeline, details { break-inside: avoid; }
  details[open] { break-inside: auto; }
  pre { max-height: none; }
}
"""
