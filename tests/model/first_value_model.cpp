// value of a held lock: ballots of first values drawn before the promises. One lock_id, NM masters (which also coordinate), NA attempts, NU updates.
#include <bits/stdc++.h>
using namespace std; typedef uint8_t u8; typedef uint16_t u16;
#ifndef NM
#define NM 3
#endif
#ifndef NA
#define NA 3
#endif
#ifndef NU
#define NU 3
#endif
#ifndef MUT
#define MUT 0
#endif
const int Q=NM/2+1;
static const char*mutname[]={"none","no clean check","a promise forgets the higher ballot","a commit takes no heed of what was lost here (L)","commit below noted promise accepted","lost promise not in L","vouched whatever was lost","learn forgets the promise's ballot","ballot drawn at the commit (token)","L not set at restart","a commit takes no heed of what its record noted"};
struct M{ u16 clock; u8 rec,ver; u16 wrote,prep,noted; u8 vouched; u8 prom; u16 pf,pn; u8 pa; u16 L; };
struct A{ u8 st,node; u16 f,tok; u8 own; u16 ownb; u8 pst[NM],pk[NM],clean[NM]; u16 pno[NM],pb[NM]; u8 pv[NM],had[NM]; u8 cst[NM]; };
struct U{ u8 st,node,blind; u16 b,base; u8 basev; u8 obl; u8 pst[NM],pk[NM],cnt[NM]; u16 pb[NM]; u8 wst[NM]; };
struct LR{ u8 on,to; u8 ver; u16 wrote,tok; };
struct S{ M m[NM]; A a[NA]; U u[NU]; LR l[2]; u8 held,w; u8 losses,learns,restarts,drops; u8 chain[NA+NU]; };
// versions: 0..NA-1 firsts, NA.. updates; chain[v]=base version, 255 none
static string viol; static vector<string> tr; static bool tracing=false;
#define T(...) do{ if(tracing){char x[200];snprintf(x,200,__VA_ARGS__);tr.push_back(x);} }while(0)
int holders(const S&s){int n=0;for(auto&m:s.m)n+=m.rec;return n;}
void holdcheck(S&s){ if(holders(s)<Q){s.held=0;s.w=255; for(auto&u:s.u)u.obl=255;} }
bool inchain(const S&s,int v,int w){ for(int i=0;i<NA+NU+1;i++){ if(v==w)return true; if(v>=NA&&s.u[v-NA].blind)return true; if(v<NA||v==255)return false; v=s.chain[v]; } return false; }
void lostL(M&m,u16 b){ if(b>m.L)m.L=b; }
void droprec(S&s,int i){ M&m=s.m[i]; if(MUT!=6||1)lostL(m,m.prep); m.rec=0;m.ver=0;m.wrote=m.prep=m.noted=0;m.vouched=0; }
void dropprom(S&s,int i,bool lost){ M&m=s.m[i]; if(m.prom){ if(lost&&MUT!=5)lostL(m,m.pf); m.prom=0;m.pf=m.pn=0;m.pa=0; } }
void gothad(S&s,int i){ for(auto&a:s.a) if(a.st==1) a.had[i]=1; }
void raise(u16&c,u16 v){ if(v>c)c=v; }
mt19937_64 rng;
int R(int n){return rng()%n;}
bool step(S&s){ // one random enabled step; false: nothing done
  int k=R(13);
  switch(k){
  case 0:{ int i=R(NA); A&a=s.a[i]; if(a.st)return false; if(i&&s.a[i-1].st==0)return false; a.node=R(NM); a.st=1; u16&c=s.m[a.node].clock; c++; a.f=c*16+i; for(int j=0;j<NM;j++){a.pst[j]=1;a.had[j]=s.m[j].rec;} T("A%d starts at n%d, ballot %d.%d",i,a.node+1,a.f/16,i); return true;}
  case 1:{ int i=R(NA),j=R(NM); A&a=s.a[i]; if(!a.st||a.pst[j]!=1)return false; a.pst[j]=2; M&m=s.m[j]; 
     if(m.rec){a.pk[j]=2;a.pno[j]=m.noted;a.pv[j]=m.ver;a.pb[j]=m.wrote; T("A%d: n%d held_self ver %d",i,j+1,m.ver);}
     else{ if(!m.prom){m.prom=1;m.pn=m.clock;m.pf=0;} if(MUT==2)m.pf=a.f; else if(a.f>m.pf)m.pf=a.f; m.pa=i; a.pk[j]=1;a.pno[j]=m.pn;a.clean[j]=!a.had[j]; T("A%d: n%d promises noted %d clean %d",i,j+1,m.pn,a.clean[j]); }
     raise(m.clock,a.f/16); return true;}
  case 2:{ int i=R(NA),j=R(NM); A&a=s.a[i]; if(a.st!=1||a.pst[j]!=2)return false; a.pst[j]=3; T("A%d hears n%d",i,j+1); 
     int n=0,cl=0; bool own=false; u16 hi=s.m[a.node].clock; a.own=255;a.ownb=0;
     for(int x=0;x<NM;x++)if(a.pst[x]==3){n++; raise(hi,a.pno[x]); if(a.pk[x]==2){own=true; if(a.own==255||a.pb[x]>a.ownb){a.own=a.pv[x];a.ownb=a.pb[x];}} else cl+=a.clean[x];}
     if(n<Q)return true; if(!own&&MUT!=1&&cl<Q){ if(n==NM)a.st=4; return true;}
     a.tok=hi+1; s.m[a.node].clock=a.tok; a.st=2; if(MUT==8)a.f=a.tok*16+i; for(int x=0;x<NM;x++)a.cst[x]=1; T("A%d commits token %d brings %d",i,a.tok,a.own==255?i:a.own); return true;}
  case 3:{ int i=R(NA),j=R(NM); A&a=s.a[i]; if(a.st<2||a.cst[j]!=1)return false; if(a.pst[j]==1)return false; M&m=s.m[j]; bool first=a.own==255; int v=first?i:a.own; u16 b=first?a.f:a.ownb; bool ok;
     if(m.rec) ok=a.tok>m.noted && !( m.ver!=v && m.wrote>(first?0:a.ownb)) && !(first&&MUT!=10&&b<m.prep) && !(first&&MUT!=3&&b<m.L);
     else{ u16 fl=m.prom?m.pn:m.clock; ok=a.tok>fl; if(first&&m.prom&&b<m.pf&&MUT!=4)ok=false; if(first&&b<m.L&&MUT!=3)ok=false; }
     if(!ok){a.cst[j]=3;T("A%d: n%d refuses",i,j+1);return true;}
     if(!m.rec){ m.noted=m.prom?m.pn:m.clock; u16 pf=m.prom?m.pf:0; m.prep=max(b,MUT==7?(u16)0:pf); dropprom(s,j,false); m.rec=1;m.ver=v;m.wrote=b; m.vouched=MUT==6||b>=m.L; gothad(s,j);} else m.prep=max(m.prep,b);
     raise(m.clock,a.tok);raise(m.clock,b/16); a.cst[j]=2; T("A%d: n%d accepts ver %d vouched %d",i,j+1,m.ver,m.vouched); return true;}
  case 4:{ int i=R(NA),j=R(NM); A&a=s.a[i]; if(a.st!=2||a.cst[j]!=2)return false; a.cst[j]=4; int n=0; for(auto c:a.cst)n+=c==4; T("A%d hears acc n%d",i,j+1);
     if(n>=Q){ a.st=3; if(holders(s)>=Q){ T("A%d granted %s",i,a.own==255?"first":"again"); if(!s.held){s.held=1; s.w=a.own==255?i:255;} else if(s.w==255&&a.own==255)s.w=i; else if(a.own==255&&s.w!=255&&!0){ /* granted first while held: concurrent */ } } } return true;}
  case 5:{ int j=R(NM); if(!s.m[j].rec||!s.losses)return false; s.losses--; droprec(s,j); for(auto&a:s.a)if(a.st==2&&(a.cst[j]==2||a.cst[j]==4))a.st=4; T("n%d loses the record",j+1); holdcheck(s); return true;}
  case 6:{ int j=R(NM); if(!s.m[j].prom||!s.drops)return false; s.drops--; dropprom(s,j,true); T("n%d loses the promise",j+1); return true;}
  case 7:{ int x=R(2); LR&l=s.l[x]; if(l.on){ M&m=s.m[l.to]; T("n%d is taught ver %d",l.to+1,l.ver);
        if(!m.rec){ m.noted=m.prom?m.pn:m.clock; u16 pf=m.prom?m.pf:0; if(MUT==7)pf=0; dropprom(s,l.to,false); m.rec=1;m.ver=l.ver;m.wrote=l.wrote;m.prep=max(l.wrote,pf);m.vouched=0; gothad(s,l.to);} 
        else if(l.wrote>m.wrote){m.ver=l.ver;m.wrote=l.wrote;m.prep=max(m.prep,l.wrote);} raise(m.clock,l.tok); raise(m.clock,l.wrote/16); l=LR{}; return true;}
     if(!s.learns)return false; int a=R(NM),b=R(NM); if(a==b||!s.m[a].rec)return false; s.learns--; l.on=1;l.to=b;l.ver=s.m[a].ver;l.wrote=s.m[a].wrote;l.tok=0; T("n%d is about to be taught by n%d",b+1,a+1); return true;}
  case 8:{ int i=R(NU); U&u=s.u[i]; if(u.st)return false; if(i&&!s.u[i-1].st)return false; if(!holders(s))return false; u.node=R(NM); u.blind=R(4)==0; u.st=1; u16&c=s.m[u.node].clock; c++; u.b=c*16+8+i; u.obl=s.w; for(int j=0;j<NM;j++)u.pst[j]=1; T("U%d starts at n%d ballot %d blind %d must see %d",i,u.node+1,u.b/16,u.blind,u.obl); return true;}
  case 9:{ int i=R(NU),j=R(NM); U&u=s.u[i]; if(!u.st||u.pst[j]!=1)return false; M&m=s.m[j]; u.pst[j]=2; if(!m.rec||u.b/16<=m.noted||u.b<m.prep){u.pk[j]=0;return true;} m.prep=u.b; raise(m.clock,u.b/16); u.pk[j]=1;u.cnt[j]=m.vouched||m.wrote/16>m.noted;u.pb[j]=m.wrote; /* ver by ballot */ T("U%d: n%d prepared ver %d counts %d",i,j+1,m.ver,u.cnt[j]); return true;}
  case 10:{ int i=R(NU),j=R(NM); U&u=s.u[i]; if(u.st!=1||u.pst[j]!=2)return false; u.pst[j]=3; int n=0; u16 best=0; for(int x=0;x<NM;x++)if(u.pst[x]==3&&u.pk[x]&&(u.blind||u.cnt[x])){n++;if(u.cnt[x])best=max(best,u.pb[x]);} if(n<Q)return true;
     int v=best%16<8?best%16:NA+best%16-8; u.basev=v; s.chain[NA+i]=u.blind?255:v; u.st=2; for(int x=0;x<NM;x++)u.wst[x]=1; T("U%d writes on ver %d",i,v);
     if(!u.blind&&u.obl!=255&&s.held&&!inchain(s,v,u.obl)){viol="an update has read "+to_string(v)+" and not "+to_string(u.obl);} return true;}
  case 11:{ int i=R(NU),j=R(NM); U&u=s.u[i]; if(u.st<2)return false; if(u.wst[j]==1){ M&m=s.m[j]; if(!m.rec||u.b/16<=m.noted||u.b<m.prep||m.wrote>u.b){u.wst[j]=3;return true;} m.wrote=m.prep=u.b;m.ver=NA+i; u.wst[j]=2; T("U%d: n%d written",i,j+1); return true;}
     if(u.wst[j]==2&&u.st==2){u.wst[j]=4;int n=0;for(auto c:u.wst)n+=c==4; if(n>=Q){u.st=3; T("U%d answered",i); if(holders(s)>=Q){ s.held=1; if(s.w==255||!inchain(s,s.w,NA+i)){ /* newer obligation only if it is above */ 
            u16 wb= s.w==255?0: s.w<NA? s.a[s.w].f : s.u[s.w-NA].b; if(u.b>wb)s.w=NA+i; } } } return true;} return false;}
  case 12:{ int r=R(8); if(r){ int a=R(NM),b=R(NM); if(s.m[a].clock>=s.m[b].clock)return false; s.m[a].clock=s.m[b].clock; T("n%d hears clock of n%d",a+1,b+1); return true;}
     if(!s.restarts)return false; int j=R(NM); s.restarts--; T("n%d restarts and merges",j+1); M&m=s.m[j]; u16 c=m.clock+R(3); m=M{}; m.clock=c; 
       int src=0; bool all=true; u16 nt=0; for(int x=0;x<NM;x++)if(x!=j&&src<NM-Q+1){src++; raise(m.clock,s.m[x].clock); if(s.m[x].rec){m.rec=1; if(s.m[x].wrote>m.wrote){m.wrote=s.m[x].wrote;m.ver=s.m[x].ver;} m.prep=max(m.prep,s.m[x].prep); nt=max(nt,s.m[x].noted); all&=s.m[x].vouched||s.m[x].wrote/16>s.m[x].noted;} else {all=false; nt=max(nt,s.m[x].clock);} }
       if(m.rec){m.noted=nt;m.vouched=all;} m.L=MUT==9?0:m.clock*16+15;
       for(auto&a:s.a){ if(a.st==1||a.st==2){a.st=4; } a.had[j]=1; if(a.pst[j]==1)a.pst[j]=0; if(a.cst[j]==1)a.cst[j]=0; } for(auto&u:s.u){ if(u.st==1||u.st==2)u.st=4; if(u.pst[j]==1)u.pst[j]=0; if(u.wst[j]==1)u.wst[j]=0;} for(auto&l:s.l)if(l.on&&l.to==j)l=LR{};
       holdcheck(s); return true;}
  }
  return false;
}
int main(int c,char**v){ uint64_t seeds=atoll(v[1]),from=c>2?atoll(v[2]):1; uint64_t granted=0,upd=0,again=0; 
  for(uint64_t sd=from;sd<from+seeds;sd++){ for(int pass=0;pass<2;pass++){ tracing=pass; tr.clear(); viol=""; rng.seed(sd); S s; memset(&s,0,sizeof s); s.w=255; memset(s.chain,255,sizeof s.chain); for(auto&m:s.m)m.clock=R(4)*R(4); s.losses=R(5);s.learns=R(5);s.restarts=R(4)==0;s.drops=R(3); for(auto&u:s.u)u.obl=255;
      // weights by random sub-bias: some masters are slow
      for(int k=0;k<600&&viol.empty();k++)step(s);
      if(!pass){for(auto&a:s.a){granted+=a.st==3;again+=a.st==3&&a.own!=255;}for(auto&u:s.u)upd+=u.st==3;}
      if(viol.empty())break; if(pass){ printf("MUT %d (%s) seed %llu: %s\n",MUT,mutname[MUT],(unsigned long long)sd,viol.c_str()); for(auto&x:tr)puts(x.c_str()); return 1; } } }
  printf("MUT %d (%s): %llu walks clean; granted %llu (again %llu), updates %llu\n",MUT,mutname[MUT],(unsigned long long)seeds,(unsigned long long)granted,(unsigned long long)again,(unsigned long long)upd); }
