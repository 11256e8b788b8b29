import { describe, expect, test } from 'vitest'
import { mountsBesideGet } from '../support/own-route.ts'
import { ownRoute } from './suites/adapter/own-route.ts'

describe.each(mountsBesideGet)('%s', (_name, mount) => ownRoute(mount, { test, expect }))
