import { measureBursts, measureDeliveries, measureHttpDeliveries, type Pair, printPairs, type Sample } from './pairs.ts'
import { bundleVariants, removeVariants } from './variants.ts'

// npx tsx bench/churn-map.ts [processes]
// Compares ChurnMap with Map: alone, in a delivery in process, and in a delivery over node:http.

const processes = Number(process.argv[2] ?? 7)
const names = ['ChurnMap', 'Map'] as const
const bursts = new URL('./children/bursts.ts', import.meta.url)

function each<Cost, Field extends keyof Cost>(samples: readonly Sample<Cost>[], field: Field) {
  return samples.map(([first, second]) => [first[field], second[field]] as const)
}

const scripts = await bundleVariants('bench/children/delivery.ts', [
  { name: 'ChurnMap', replace: {} },
  { name: 'Map', replace: { 'src/internal/churn-map.ts': 'bench/children/plain-map.ts' } },
])
const pair: Pair = { names, scripts: [scripts.ChurnMap, scripts.Map] }

try {
  for (const size of [1, 16, 100, 1_000, 10_000]) {
    const samples = await measureBursts({ names, scripts: [bursts, bursts] }, processes, size)
    printPairs(`Nanoseconds per entry, bursts of ${size}`, names, [
      { name: 'time', samples: each(samples, 'nanoseconds') },
      { name: 'garbage collection', samples: each(samples, 'gcNanoseconds') },
    ])
  }
  const deliveries = await measureDeliveries(pair, processes)
  printPairs('Nanoseconds per delivery in process', names, [
    { name: 'time', samples: each(deliveries, 'nanoseconds') },
    { name: 'CPU', samples: each(deliveries, 'cpuNanoseconds') },
    { name: 'garbage collection', samples: each(deliveries, 'gcNanoseconds') },
  ])
  const http = await measureHttpDeliveries(pair, processes, 3)
  printPairs('Microseconds of CPU per delivery over node:http', names, [{ name: 'CPU', samples: http, digits: 2 }])
} finally {
  await removeVariants()
}
