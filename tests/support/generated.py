"""The bytes that a spec generates, and a spec with every kind of field."""

import io

from generators.formats import Csv
from generators.generate import Job, generate
from generators.sources import Sources

EVERY_KIND = """
fields:
  id: sequence
  scenario_name: {faker: name, pool: 50}
  u: uuid
  c: {choice: {a: 3, "b,\\"x": 1, "": 1}}
  x: {uniform: [0, 1]}
  n: {normal: [0, 1], min: -1}
  l: {lognormal: [1, 2], correlation: {with: n, rank: 0.6}}
  z: {zipf: 100}
  q: {quantiles: [0, 1, 5], decimals: 3}
  i: {integer: [-5, 5], nullable: 0.3}
  b: {boolean: 0.3}
  d: {datetime: ["2025-01-01", "2025-12-31"], step: 1h, business_hours: true}
  t: {template: "{c}/{d:%Y/%m}/{i:+d}"}
  j: {json: {a: "{t}", b: {$: {normal: [0, 1]}}, r: {$repeat: {of: {$: boolean}, min: 0, max: 2}}}}
  e: {expression: "n * 2 + (i if i > 0 else 0.5) ** 2"}
  w: {by: c, cases: {a: {integer: [1, 9]}}, otherwise: {uniform: [10, 20]}}
  s: {scale: [4000, 5000, 6000]}
  p: {integer: [1, 1000000], unique: true}
  m: {faker: email, unique: true}
  o: {normal: [0, 9], decimals: 2, unique: true}
"""


def written(spec, n, *, seed=7, form=Csv(), block=65_536, processes=1):  # noqa: B008  # a frozen value
    out = io.BytesIO()
    generate(Job(spec, seed, n, form, Sources()), out, lambda _: None, processes, block)
    return out.getvalue()
