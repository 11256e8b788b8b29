import { expect, test } from 'vitest'
import { Random } from './random.ts'
import { Process, World } from './world.ts'

test('a shorter pause within a longer one lets no later step of the process pass an earlier one', async () => {
  const world = new World(new Random(1))
  const process = new Process(world, 'server 1.1')
  const steps: string[] = []
  const step = (name: string) => world.schedule(process, 100, () => steps.push(`${name} at ${world.now}`))
  process.pause(15_000)
  step('earlier')
  await world.run(1_000)
  process.pause(4_000)
  step('later')
  await world.run(20_000)
  expect(steps).toEqual(['earlier at 15000', 'later at 15000'])
})
