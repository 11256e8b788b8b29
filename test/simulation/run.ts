// Plays the runs of many seeds: npx tsx test/simulation/run.ts --from 1 --seeds 500 [--workers] [--setup postgres]
// The first seed that fails: --until-failure. One seed, with its story: npx tsx test/simulation/run.ts --from 17 --seeds 1 --story
import { parseArgs } from 'node:util'
import type { Setup } from './plan.ts'

const { values } = parseArgs({
  options: {
    from: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '500' },
    setup: { type: 'string', multiple: true },
    workers: { type: 'boolean', default: false },
    'until-failure': { type: 'boolean', default: false },
    story: { type: 'boolean', default: false },
  },
})
// Read when the modules are loaded.
if (values.workers) Object.defineProperty(globalThis, 'navigator', { value: { userAgent: 'Cloudflare-Workers' } })
const { play, setups } = await import('./play.ts')

const startedAt = Date.now()
let played = 0
let failed = 0
for await (const { seed, plan, violations, text } of play(
  Number(values.from),
  Number(values.seeds),
  (values.setup as Setup[] | undefined) ?? setups,
)) {
  played++
  if (values.story) console.log(JSON.stringify(plan, null, 1), `\n${text}`)
  if (violations.length === 0) continue
  failed++
  console.log(`seed ${seed} (${plan.setup}): ${violations.join('; ')}`)
  if (values['until-failure']) break
}
const seconds = ((Date.now() - startedAt) / 1_000).toFixed(1)
console.log(`${played} seeds played in ${seconds} s, ${failed} failed`)
if (failed > 0 || played === 0) process.exitCode = 1
