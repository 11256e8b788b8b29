import { execSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { cores } from './child.ts'
import { contenders } from './contenders/index.ts'
import { measureDurable, printDurable } from './durable.ts'
import { measureHeap, printHeap } from './heap.ts'
import { measureInProcess, printInProcess } from './in-process.ts'
import { measureHttp, printHttp } from './rounds.ts'
import { measureSlowHandlers, printSlowHandlers } from './slow-handlers.ts'
import { printTargets, type Results } from './targets.ts'

const parts = ['in-process', 'heap', 'slow-handlers', 'durable']
const usage = `npm run bench -- [options]

  --rounds <n>     rounds of every contender, 5 by default
  --seconds <n>    seconds of load in a round over HTTP, 3 by default
  --only <text>    only the measurements with this text in their name, and their baselines; can be repeated:
                   ${[...contenders.map(({ name }) => name), ...parts].join(', ')}
  --json <file>    write the results as JSON too
`

const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '3' },
    only: { type: 'string', multiple: true, default: [''] },
    json: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})

function positive(text: string): number {
  const value = Number(text)
  if (!(value > 0)) throw new Error(`${text} is not a positive number`)
  return value
}

async function main(): Promise<void> {
  const rounds = positive(flags.rounds)
  const seconds = positive(flags.seconds)
  const wanted = (name: string) => flags.only.some((text) => name.includes(text))
  const chosen = contenders.filter(({ name }) => wanted(name))
  const baselines = new Set(chosen.map(({ baseline }) => baseline))
  const http = contenders.filter((contender) => chosen.includes(contender) || baselines.has(contender.name))
  if (http.length === 0 && !parts.some(wanted)) throw new Error(`Nothing is named ${flags.only.join(' or ')}`)

  execSync('npm run build', { stdio: ['ignore', 'ignore', 'inherit'] })
  const pinning = cores.length === 2 ? `measured on core ${cores[0]}, loaded from core ${cores[1]}` : 'not pinned'
  console.log(`node ${process.version}, ${pinning}, ${rounds} rounds of ${seconds} s`)

  const results: Results = {
    http: http.length > 0 ? await measureHttp(http, rounds, seconds) : [],
    inProcess: wanted('in-process') ? await measureInProcess(rounds) : undefined,
    heap: wanted('heap') ? await measureHeap() : undefined,
    slowHandlers: wanted('slow-handlers') ? await measureSlowHandlers() : undefined,
    durable: wanted('durable') ? await measureDurable(rounds) : undefined,
  }

  if (results.http.length > 0) printHttp(results.http)
  if (results.inProcess) printInProcess(results.inProcess)
  if (results.heap) printHeap(results.heap)
  if (results.slowHandlers) printSlowHandlers(results.slowHandlers)
  if (results.durable) printDurable(results.durable)
  printTargets(results)
  if (flags.json !== undefined) {
    const run = { node: process.version, pinning, rounds, seconds, ...results }
    await writeFile(flags.json, `${JSON.stringify(run, null, 2)}\n`)
  }
}

if (flags.help) console.log(usage)
else await main()
