"""The page's style sheet; the reader's system chooses light or dark colours."""

from __future__ import annotations

STYLE = """
:root{--fg:#1c2128;--soft:#57606a;--bg:#f6f8fa;--paper:#fff;--rule:#d0d7de;--good:#1a7f37;
--bad:#b42318;--warn:#8a5a00;--hit:180,35,24}
@media(prefers-color-scheme:dark){:root{--fg:#e6edf3;--soft:#9198a1;--bg:#0d1117;--paper:#161b22;
--rule:#30363d;--good:#4ac26b;--bad:#ff7b72;--warn:#d29922;--hit:255,123,114}}
*{box-sizing:border-box}
body{font:15px/1.5 system-ui,sans-serif;margin:0;color:var(--fg);background:var(--bg)}
header{padding:1.4rem 1.5rem .6rem;max-width:1000px;margin:auto}
h1{font-size:1.5rem;margin:0 0 .5rem}h2{font-size:1.1rem;margin:0 0 .8rem}h3{font-size:.95rem}
nav{line-height:1.9}
nav a{display:inline-block;color:var(--soft);font-size:13px;margin-right:1rem;text-decoration:none}
nav a:hover{text-decoration:underline}
main{max-width:1000px;margin:auto;padding:0 1.5rem 3rem}
section{background:var(--paper);border:1px solid var(--rule);border-radius:8px;
padding:1.1rem 1.3rem;margin-top:1rem}
.cards{display:flex;flex-wrap:wrap;gap:.7rem}
.card{background:var(--paper);border:1px solid var(--rule);border-radius:8px;padding:.6rem 1rem;
min-width:7rem;flex:1}
.card b{display:block;font-size:1.35rem}.card span{color:var(--soft);font-size:12px}
.card.good b,.good{color:var(--good)}.card.bad b{color:var(--bad)}
svg{width:100%;height:auto;font:12px system-ui,sans-serif;fill:var(--fg);display:block}
img.map{display:block;max-width:100%;height:auto;margin:auto}
svg polyline{fill:none;stroke-width:1.8}
svg .grid{stroke:var(--rule)}svg .axis{fill:var(--soft);font-size:11px}
table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}
td,th{padding:.25rem .7rem;text-align:left;border-bottom:1px solid var(--rule);white-space:nowrap}
th{color:var(--soft);font-weight:600}.number{text-align:right}
td.long{white-space:normal;min-width:20rem}
.matrix td{text-align:center;min-width:2.6rem}.matrix .sum{color:var(--soft)}
.matrix .hit{background:rgba(var(--hit),var(--share))}
.wide{overflow-x:auto;margin:.5rem 0}.note{color:var(--soft);font-size:13px;margin:.3rem 0}
.legend{margin:.4rem 0 0}.legend span{margin-right:1.1rem;font-size:12px;white-space:nowrap}
.legend i{display:inline-block;width:.75rem;height:.75rem;border-radius:2px;margin-right:.35rem}
summary{cursor:pointer;color:var(--soft);font-size:13px;margin-top:.6rem}
.verdict{display:inline-block;margin:0 0 .6rem;padding:.15rem .8rem;border:1px solid;
border-radius:1rem;font-weight:600}
.verdict.good,.findings .good::marker{color:var(--good)}
.verdict.warn,.findings .warn::marker{color:var(--warn)}
.verdict.bad,.findings .bad::marker{color:var(--bad)}
.findings{margin:0;padding-left:1.4rem}.findings li{margin:.5rem 0}
.findings li::marker{font-weight:700}
.first{color:var(--soft)}
@media(max-width:600px){section{overflow-x:auto}section>svg{min-width:620px}}
@page{size:A4;margin:14mm 12mm}
@media print{
:root{--fg:#1c2128;--soft:#57606a;--bg:#fff;--paper:#fff;--rule:#d0d7de;--good:#1a7f37;
--bad:#b42318;--warn:#8a5a00;--hit:180,35,24;color-scheme:light}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}
body{font-size:10.5pt}nav,summary{display:none}
header,main{max-width:none;padding-left:0;padding-right:0}
section{border:0;border-top:1px solid var(--rule);border-radius:0;padding:.7rem 0}
h2,h3,h2+.note{break-after:avoid}img.map{max-height:240mm}
section:not(.rows),svg,.cards,.findings li,tr{break-inside:avoid}
.wide{overflow:visible}table{font-size:7.5pt;width:100%}
td,th{white-space:normal;overflow-wrap:break-word;padding:.15rem .35rem}
td.number{white-space:nowrap}td.long{min-width:0}
.matrix{width:auto}}
"""
