import sys; sys.path.insert(0,'benchmarks')
import cProfile,pstats,device as d
x,y=d.rows(int(sys.argv[1]),1)
d.timed("cuda",x[:5000],y[:5000],"kernel")
p=cProfile.Profile(); p.enable(); r=d.timed("cuda",x,y,"kernel"); p.disable(); print(r[0],r[1]); pstats.Stats(p).sort_stats('tottime').print_stats(45)
