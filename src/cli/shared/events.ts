import { type EventType, eventTypes } from '../../index.ts'
import { subscriptions } from '../../service/client/subscriptions.ts'
import { type Flag, list } from './flags.ts'

type Events = readonly EventType[]

export const events = (help: string): Flag<Events> => {
  const words = list('<types|all>', `${help}: ${eventTypes.join(', ')}, or all`, ['all', ...eventTypes])
  const read = (given: string): Events => {
    const chosen = words.read(given)
    return chosen.includes('all') ? eventTypes : eventTypes.filter((type) => chosen.includes(type))
  }
  return { ...words, read }
}

export const subscribing = (chosen: Events) => subscriptions((type) => chosen.includes(type))
