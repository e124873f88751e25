"""How a page looks: light or dark, wide or narrow, on paper."""

STYLE = """
:root {
  --paper: #ffffff; --ink: #1b1f24; --quiet: #565f6b; --rule: #d4d9df;
  --tint: #f4f6f8; --link: #1a4fa0; --warn: #8a3b00; --grid: #e3e7eb;
  --c0: #1f5fbf; --c1: #b5490b; --c2: #1a7a4c; --c3: #8a3aa8; --c4: #6b6400;
  --c5: #b0204f;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
  line-height: 1.5; color: var(--ink); background: var(--paper);
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171a; --ink: #e4e8ec; --quiet: #a3adb8; --rule: #3a424b;
    --tint: #1d2226; --link: #8fb8ff; --warn: #ffb27a; --grid: #2c333a;
    --c0: #7fb0ff; --c1: #ff9d5c; --c2: #5fd39a; --c3: #d79bf0; --c4: #d6cc5a;
    --c5: #ff8cab;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem 1.25rem 4rem; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 1rem;
  overflow-wrap: anywhere; }
h2 { font-size: 1.3rem; margin: 3rem 0 .75rem; padding-top: .75rem;
  border-top: 1px solid var(--rule); overflow-wrap: anywhere; }
h3 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
h4 { font-size: 1rem; margin: 1.5rem 0 .5rem; }
p, ul, ol, dl { max-width: 46rem; }
a { color: var(--link); }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
main:focus-visible { outline: none; }
.skip { position: absolute; left: -999rem; }
.skip:focus { position: static; display: inline-block; padding: .5rem 0; }
.lead { max-width: 46rem; margin: 0; }
.lead div { margin: 0 0 .75rem; }
.lead dt { font-size: .8rem; font-weight: 600; color: var(--quiet);
  text-transform: uppercase; letter-spacing: .05em; }
.lead dd { margin: 0; font-size: 1.1rem; line-height: 1.45; }
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: .25rem 1.25rem;
  padding: .75rem 0; margin: 1.5rem 0 0; max-width: none;
  border-top: 1px solid var(--rule); border-bottom: 1px solid var(--rule); }
nav + main > section:first-child > h2 { border-top: 0; margin-top: 1rem; }
.note { color: var(--quiet); font-size: .9rem; }
.finding { border-left: .25rem solid var(--warn); padding: .1rem 0 .1rem 1rem;
  margin: 1rem 0; max-width: 46rem; }
.finding h3, .finding h4, .finding h5 { margin: 0 0 .25rem; font-size: 1rem; }
.finding p { margin: 0; }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums;
  font-size: .92rem; }
caption { text-align: left; color: var(--quiet); padding-bottom: .35rem;
  font-size: .9rem; }
th, td { padding: .3rem .75rem .3rem 0; vertical-align: top; text-align: left;
  border-bottom: 1px solid var(--rule); font-weight: 400; }
thead th { font-weight: 600; border-bottom: 2px solid var(--rule);
  vertical-align: bottom; }
tbody th { color: var(--ink); }
@media (min-width: 40rem) { tbody th { white-space: nowrap; } }
td.text { min-width: 9rem; }
th.num, td.num { text-align: right; white-space: nowrap; }
th.num:not(:last-child), td.num:not(:last-child) { padding-right: 1.25rem; }
.card { min-width: min(100%, 34rem); }
.card th { color: var(--quiet); white-space: nowrap; padding-right: 1.5rem; }
.card td { overflow-wrap: anywhere; }
code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace;
  font-size: .88em; overflow-wrap: anywhere; }
.figures { display: grid; gap: 1.5rem 2.5rem; margin: 1rem 0;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); }
figure { margin: 0; min-width: 0; max-width: 33rem; }
figure > svg { display: block; width: 100%; height: auto; }
figcaption { font-size: .9rem; color: var(--quiet); margin-top: .25rem; }
figcaption strong { color: var(--ink); }
details { margin: .5rem 0; font-size: .92rem; }
summary { cursor: pointer; color: var(--link); }
.gallery { list-style: none; padding: 0; margin: 1rem 0; max-width: none;
  display: grid; gap: 1rem; grid-template-columns:
  repeat(auto-fill, minmax(7.5rem, 1fr)); font-size: .85rem; line-height: 1.35; }
.gallery img { display: block; width: 6rem; height: 6rem; object-fit: contain;
  image-rendering: pixelated; background: var(--tint);
  border: 1px solid var(--rule); margin-bottom: .25rem; }
.wrong { color: var(--warn); font-weight: 600; }
footer { margin-top: 3rem; border-top: 1px solid var(--rule); color: var(--quiet);
  font-size: .9rem; }
svg text { fill: var(--ink); font-size: 13px; }
svg .tick { fill: var(--quiet); font-size: 12px; }
svg .grid { stroke: var(--grid); stroke-width: 1; }
svg .frame { stroke: var(--quiet); stroke-width: 1; }
svg .guide { stroke: var(--quiet); stroke-width: 1.25; stroke-dasharray: 2 4;
  fill: none; }
svg .line { fill: none; stroke-width: 2; stroke-linejoin: round; }
svg .thin { stroke-width: 1.1; }
svg .error { stroke-width: 1.25; }
svg .band { stroke: none; fill-opacity: .18; }
svg .bar { fill-opacity: .55; stroke-width: 1; }
.s0 { stroke: var(--c0); } .s1 { stroke: var(--c1); } .s2 { stroke: var(--c2); }
.s3 { stroke: var(--c3); } .s4 { stroke: var(--c4); } .s5 { stroke: var(--c5); }
.f0 { fill: var(--c0); } .f1 { fill: var(--c1); } .f2 { fill: var(--c2); }
.f3 { fill: var(--c3); } .f4 { fill: var(--c4); } .f5 { fill: var(--c5); }
.d1 { stroke-dasharray: 7 3; } .d2 { stroke-dasharray: 2 3; }
.d3 { stroke-dasharray: 9 3 2 3; } .d4 { stroke-dasharray: 12 4; }
.d5 { stroke-dasharray: 4 2 1 2; }
@media (forced-colors: active) {
  svg .line, svg .frame, svg .guide, svg .error { stroke: CanvasText; }
  svg text { fill: CanvasText; }
}
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav, .skip { display: none; }
  figure, tr, .finding { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
}
"""
"""The style sheet; it names no file."""
