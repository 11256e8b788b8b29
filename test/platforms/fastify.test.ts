import { nodeProgram } from './node-program.ts'
import { provePlatform } from './platform.suite.ts'

provePlatform('fastify sqlite', nodeProgram('fastify', 'sqlite'))
