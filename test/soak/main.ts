import { inspect, parseArgs } from 'node:util'
import { fuzz } from './fuzz.ts'
import { bullmq, durableObject, postgres, sqlite } from './kills.ts'
import { memory } from './memory.ts'
import type { Part, SoakOptions } from './part.ts'
import { simulation } from './simulation.ts'

const parts: Readonly<Record<string, Part>> = {
  sqlite,
  bullmq,
  postgres,
  'durable-object': durableObject,
  memory,
  fuzz,
  simulation,
}

// npm run soak -- --kills 500 --minutes 60 --rate 50 --bodies 10000000 --seeds 50000 --seed 7 [part …]
// The defaults are short enough for every change. --inboxes memory,sqlite measures only these; --from is the number of
// the first fuzzed body; --without-transaction shows how many rows kills would double in Postgres without one.
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    kills: { type: 'string', default: '30' },
    minutes: { type: 'string', default: '0.7' },
    rate: { type: 'string', default: '300' },
    inboxes: { type: 'string', default: 'memory,sqlite,bullmq,postgres' },
    bodies: { type: 'string', default: '200000' },
    from: { type: 'string', default: '0' },
    seeds: { type: 'string', default: '500' },
    seed: { type: 'string', default: `${Math.floor(Math.random() * 1_000_000)}` },
    'without-transaction': { type: 'boolean', default: false },
  },
})

const number = (name: 'kills' | 'minutes' | 'rate' | 'bodies' | 'from' | 'seeds' | 'seed') => {
  const value = Number(values[name])
  if (values[name] === '' || !(value >= 0)) throw new Error(`--${name} has to be a number`)
  return value
}
const options: SoakOptions = {
  kills: number('kills'),
  minutes: number('minutes'),
  rate: number('rate'),
  inboxes: values.inboxes.split(','),
  bodies: number('bodies'),
  from: number('from'),
  seeds: number('seeds'),
  seed: number('seed'),
  transaction: !values['without-transaction'],
}

const names = positionals.length > 0 ? positionals : Object.keys(parts)
const unknown = names.find((name) => !Object.hasOwn(parts, name))
if (unknown !== undefined)
  throw new Error(`there is no part ${unknown}; the parts are ${Object.keys(parts).join(', ')}`)
console.log(`soak: ${names.join(', ')}; --seed ${options.seed}`)

for (const name of names) {
  const startedAt = Date.now()
  const faults = await (parts[name] as Part)(options).catch((error: unknown) => [inspect(error)])
  for (const fault of faults) console.log(`FAULT: ${fault}`)
  if (faults.length > 0) process.exitCode = 1
  const outcome = faults.length === 0 ? 'passed' : 'failed'
  console.log(`${name} ${outcome} after ${Math.round((Date.now() - startedAt) / 1_000)} s`)
}
